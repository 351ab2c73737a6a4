/* Processes that were taken over before; see handover/predecessors.h. */
#include "daemon/handover/predecessors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

void
predecessors_init(struct predecessors *p, struct loop *loop, void (*ended)(void *arg), void *arg)
{
	*p = (struct predecessors){ .loop = loop, .ended = ended, .arg = arg };
	for (unsigned i = 0; i < PREDECESSORS_MAX; i++)
		p->v[i] = (struct predecessor){ .io.fd = -1, .all = p };
}

static void
forget(struct predecessor *one)
{
	loop_del(one->all->loop, &one->io);
	close(one->io.fd);
	one->io.fd = -1;
	one->all->cnt--;
}

static void
on_end(struct loop_io *io, unsigned events)
{
	struct predecessor *one = (struct predecessor *)io;
	struct predecessors *p = one->all;

	(void)events;
	forget(one);
	log_msg(LOG_LVL_NOTICE, "a process that was taken over has ended: pid=%u left=%u", (unsigned)one->pid, p->cnt);
	p->ended(p->arg);
}

int
predecessors_add(struct predecessors *p, pid_t pid, const char *path, FILE *err)
{
	struct predecessor *one = p->v;

	for (unsigned i = 0; i < PREDECESSORS_MAX; i++)
		if (p->v[i].io.fd >= 0 && p->v[i].pid == (uint32_t)pid)
			return 0;
	while (one < p->v + PREDECESSORS_MAX && one->io.fd >= 0)
		one++;
	if (one == p->v + PREDECESSORS_MAX) {
		fprintf(err,
		    "%u processes that were taken over serve connections still: end one of them, see \"smcrctl status\"\n",
		    p->cnt);
		return -E2BIG;
	}
	/* Process 0 is one that this namespace does not see. */
	if (pid <= 0 || strlen(path) >= sizeof(one->path))
		return -EINVAL;
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	one->io = (struct loop_io){ .fd = fd, .cb = on_end };
	one->pid = (uint32_t)pid;
	strcpy(one->path, path);
	int rc = loop_add(p->loop, &one->io);
	if (rc != 0) {
		close(fd);
		one->io.fd = -1;
		return rc;
	}
	p->cnt++;
	return 0;
}

/* A connected socket, or -errno. */
static int
dial(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}

/* One file beside the control socket. The kernel names the process: the number in the name could be wrong. */
static int
look_at(struct predecessors *p, const char *path, FILE *err)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	struct stat st;
	int rc = 0;

	if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return 0;
	const int fd = dial(path);
	if (fd == -ECONNREFUSED)
		(void)unlink(path); /* it was killed */
	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid())
		rc = predecessors_add(p, cred.pid, path, err);
	close(fd);
	return rc == -E2BIG ? rc : 0;
}

int
predecessors_find(struct predecessors *p, const char *path, FILE *err)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	const size_t dir_len = (size_t)(name - path), name_len = strlen(name);
	char at[PREDECESSORS_PATH_MAX + 16], dir[sizeof(at)] = ".";
	int rc = 0;

	if (strlen(path) >= PREDECESSORS_PATH_MAX)
		return 0;
	if (dir_len > 0)
		snprintf(dir, sizeof(dir), "%.*s", (int)dir_len, path);
	DIR *d = opendir(dir);
	for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL && rc == 0; e = readdir(d)) {
		const char *number = e->d_name + name_len + 1;

		if (strncmp(e->d_name, name, name_len) != 0 || e->d_name[name_len] != '.' || *number == '\0' ||
		    strspn(number, "0123456789") != strlen(number) || strlen(number) > 10)
			continue;
		snprintf(at, sizeof(at), "%.*s%s.%.10s", (int)dir_len, path, name, number);
		rc = look_at(p, at, err);
	}
	if (d != NULL)
		closedir(d);
	return rc;
}

/* By its control socket: Landlock permits no signals to processes that were confined apart. */
static int
request_end(const struct predecessor *one, uint32_t limit_ms)
{
	char line[96], limit[32] = "";
	const int fd = dial(one->path);

	if (fd < 0)
		return fd;
	if (limit_ms != 0)
		snprintf(limit, sizeof(limit), ",\"timeout_ms\":%u", (unsigned)limit_ms);
	const int len = snprintf(line, sizeof(line), "{\"command\":\"drain\",\"then_exit\":true%s}\n", limit);
	int rc = send(fd, line, (size_t)len, MSG_NOSIGNAL) == len ? 0 : -EIO;
	close(fd); /* the request is read all the same */
	return rc;
}

void
predecessors_end(struct predecessors *p, uint32_t limit_ms)
{
	const unsigned cnt = p->cnt;

	for (unsigned i = 0; i < PREDECESSORS_MAX; i++) {
		int rc = p->v[i].io.fd >= 0 ? request_end(&p->v[i], limit_ms) : 0;

		if (rc == 0)
			continue;
		log_msg(LOG_LVL_WARNING,
		    "the end of a process that was taken over cannot be requested: pid=%u error=\"%s\"",
		    (unsigned)p->v[i].pid, strerror(-rc));
		forget(&p->v[i]);
	}
	if (p->cnt < cnt)
		p->ended(p->arg);
}

void
predecessors_fini(struct predecessors *p)
{
	for (unsigned i = 0; i < PREDECESSORS_MAX; i++)
		if (p->loop != NULL && p->v[i].io.fd >= 0)
			forget(&p->v[i]);
}
