/* See descriptors.h. */
#include "descriptors.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define FDS_MAX 512 /* none has a higher number */
#define SEND_MAX 253

static const char *const names[DESC_CNT] = {
	[DESC_CONTROL] = "control",
	[DESC_READONLY] = "readonly",
	[DESC_UNIX] = "unix",
	[DESC_BOUND] = "bound",
	[DESC_SEQPACKET] = "seqpacket",
	[DESC_DATAGRAM] = "datagram",
};

static char dir[] = "/tmp/fuzz_descriptors.XXXXXX";
static int fds[DESC_CNT];
static char paths[DESC_CNT][64];
static bool made;

const char *
descriptors_path_of(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void
remove_all(void)
{
	for (unsigned i = 0; i < DESC_CNT; i++)
		if (paths[i][0] != '\0')
			unlink(paths[i]);
	unlink(descriptors_path_of("file"));
	rmdir(dir);
}

static int
unix_socket(int type, const char *path, bool listens)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	/* Without a path the kernel finds a name. */
	socklen_t len = path[0] != '\0' ? sizeof(sun) : sizeof(sa_family_t);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(sun.sun_path, path);
	FUZZ_CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&sun, len) == 0);
	FUZZ_CHECK(!listens || listen(fd, 4) == 0);
	return fd;
}

/* At the address of another one, or at one that is free; -1 on a host without such addresses. */
static int
tcp_socket(int domain, int twin)
{
	const int on = 1;
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)domain };
	socklen_t len = sizeof(ss);
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (domain == AF_INET)
		((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)&ss)->sin6_addr = in6addr_loopback;
	if (twin >= 0)
		(void)getsockname(twin, (struct sockaddr *)&ss, &len);
	len = domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&ss, len) == 0 && listen(fd, 4) == 0)
		return fd;
	close(fd);
	return -1;
}

static int
make(enum descriptor nr)
{
	int ends[2], fd;

	switch (nr) {
	case DESC_CONTROL:
	case DESC_READONLY:
	case DESC_UNIX:
	case DESC_ABSTRACT:
		return unix_socket(SOCK_STREAM, paths[nr], true);
	case DESC_BOUND:
		return unix_socket(SOCK_STREAM, paths[nr], false);
	case DESC_SEQPACKET:
		return unix_socket(SOCK_SEQPACKET, paths[nr], true);
	case DESC_DATAGRAM:
		return unix_socket(SOCK_DGRAM, paths[nr], false);
	case DESC_TCP4:
		return tcp_socket(AF_INET, -1);
	case DESC_TCP4_TWIN:
		return tcp_socket(AF_INET, fds[DESC_TCP4]);
	case DESC_TCP6:
		fd = tcp_socket(AF_INET6, -1);
		return fd >= 0 ? fd : tcp_socket(AF_INET, -1);
	case DESC_FRESH:
		return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	case DESC_UDP:
		return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	case DESC_PIPE:
		FUZZ_CHECK(pipe2(ends, O_CLOEXEC) == 0);
		return ends[0];
	case DESC_NULL:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case DESC_DIR:
		return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case DESC_EPOLL:
		return epoll_create1(EPOLL_CLOEXEC);
	case DESC_CNT:
		break;
	}
	return -1;
}

static void
make_all(void)
{
	FUZZ_CHECK(mkdtemp(dir) != NULL);
	for (unsigned i = 0; i < DESC_CNT; i++) {
		if (names[i] != NULL)
			strcpy(paths[i], descriptors_path_of(names[i]));
		fds[i] = make(i);
		FUZZ_CHECK(fds[i] >= 0);
	}
	close(open(descriptors_path_of("file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	(void)atexit(remove_all);
	made = true;
}

void
descriptors_begin(void)
{
	if (!made)
		make_all();
	for (unsigned i = 0; i < DESC_CNT; i++) {
		if (paths[i][0] == '\0' || access(paths[i], F_OK) == 0)
			continue;
		close(fds[i]);
		fds[i] = make(i);
	}
}

int
descriptors_fd(enum descriptor nr)
{
	return fds[nr];
}

const char *
descriptors_path(enum descriptor nr)
{
	return paths[nr];
}

struct listen_socket
descriptors_lsock(enum descriptor nr)
{
	struct listen_socket l = listen_socket_of_fd(fds[nr]);
	struct stat st;

	if (paths[nr][0] != '\0' && lstat(paths[nr], &st) == 0) {
		strcpy(l.path, paths[nr]);
		l.dev = st.st_dev;
		l.ino = st.st_ino;
	}
	return l;
}

void
descriptors_check(void)
{
	FUZZ_CHECK(access(paths[DESC_BOUND], F_OK) == 0);
	FUZZ_CHECK(access(descriptors_path_of("file"), F_OK) == 0);
}

unsigned
descriptors_open(void)
{
	static struct pollfd p[FDS_MAX];
	unsigned cnt = 0;

	for (int i = 0; i < FDS_MAX; i++)
		p[i] = (struct pollfd){ .fd = i };
	FUZZ_CHECK(poll(p, FDS_MAX, 0) >= 0);
	for (unsigned i = 0; i < FDS_MAX; i++)
		cnt += (p[i].revents & POLLNVAL) == 0;
	return cnt;
}

void
descriptors_send(int sock, const void *p, size_t len, int fd, unsigned cnt)
{
	static union {
		char buf[CMSG_SPACE(SEND_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (cnt > 0) {
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
		for (unsigned i = 0; i < cnt; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	}
	(void)!sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}
