/* Listening sockets and their files; see net/listen_socket.h. */
#include "daemon/net/listen_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/net/net.h"

#define LOCK_WAIT_NS 10000000
#define NO_DIRECTORY " (its directory does not exist)"

/* How often a start may wait for a directory lock, over all sockets: a user who may open a directory may lock it
 * without end. Only one thread starts sockets. */
static unsigned waits_left = 100;

/* Two starting daemons must not both find a dead socket and remove each other's, so the directory is locked from the
 * probe to listen(). Without the lock the start continues. */
static int
lock_directory(const char *path, bool waits)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && waits && waits_left > 0) {
		waits_left--;
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_WAIT_NS }, NULL);
	}
	return fd;
}

static void
unlock(struct listen_socket *l)
{
	if (l->lock >= 0)
		close(l->lock);
	l->lock = -1;
}

/* Does a process have the socket of this file open? 0: no; -EADDRINUSE: yes; other: unknown. Connects with another
 * socket type, so the server there sees no client. */
static int
probe(const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int rc = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ? 0 : errno;
	close(fd);
	if (rc == 0 || rc == EPROTOTYPE)
		return -EADDRINUSE;
	return rc == ECONNREFUSED || rc == ENOENT ? 0 : -rc;
}

/* A reload may lack a right that a start has. */
static const char *
confined_words(const struct listen_socket_file *f, int rc)
{
	return rc == -EACCES && !f->waits
	    ? " (a confined smcrd makes sockets only in directories where it had some at start, see Confinement in smcrd(8)): " CONFIG_BY_TAKE_OVER
	    : "";
}

/* *there: a socket has the path, and the result is probe()'s. 0, or -errno; a line, unless probe() does not know. */
static int
probe_path(const struct sockaddr_un *sun, const struct listen_socket_file *f, bool *there, FILE *err)
{
	struct stat st;

	*there = lstat(sun->sun_path, &st) == 0;
	if (!*there)
		return 0;
	*there = S_ISSOCK(st.st_mode);
	if (!*there) {
		fprintf(err, "%s %s: a file of this name exists that is not a socket\n", f->what, sun->sun_path);
		return -EEXIST;
	}
	int rc = probe(sun);
	if (rc == -EADDRINUSE)
		fprintf(err,
		    "%s %s: a running daemon listens there; stop it, set another path, or start with --take-over\n",
		    f->what, sun->sun_path);
	return rc;
}

/* Removes a dead socket at the path. */
static int
clear_path(const struct sockaddr_un *sun, const struct listen_socket_file *f, FILE *err)
{
	bool there;
	int rc = probe_path(sun, f, &there, err);

	if (!there || rc == -EADDRINUSE)
		return rc;
	if (rc == 0 && unlink(sun->sun_path) != 0)
		rc = -errno;
	if (rc != 0)
		fprintf(err, "%s %s: cannot replace the old one: %s%s\n", f->what, sun->sun_path, strerror(-rc),
		    confined_words(f, rc));
	return rc;
}

/* Stores the identity of the file and sets its owner and group through a descriptor, so that the file cannot be
 * replaced in between. 0, or -errno with the failed step in *step. */
static int
own_file(struct listen_socket *l, const struct listen_socket_file *f, const char **step)
{
	int fd = open(l->path, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct stat st;

	*step = "";
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode)) {
		close(fd);
		return -EEXIST;
	}
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	if ((st.st_mode & 0777) != (f->mode & 0777)) {
		*step = " (the default ACL of its directory overrides the mode)";
		rc = -EPERM;
	} else if ((f->owner != (uid_t)-1 && f->owner != st.st_uid) ||
	    (f->group != (gid_t)-1 && f->group != st.st_gid)) {
		*step = " (setting its owner and group)";
		rc = fchownat(fd, "", f->owner, f->group, AT_EMPTY_PATH) == 0 ? 0 : -errno;
	}
	close(fd);
	return rc;
}

static int
bind_file(struct listen_socket *l, const struct sockaddr_un *sun, const struct listen_socket_file *f, const char **step)
{
	/* The file has its mode from its creation. */
	mode_t old = umask(~f->mode & 0777);
	int rc = bind(l->fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ? 0 : -errno;

	umask(old);
	*step = rc == -ENOENT ? NO_DIRECTORY : confined_words(f, rc);
	return rc == 0 ? own_file(l, f, step) : rc;
}

struct listen_socket
listen_socket_of_fd(int fd)
{
	return (struct listen_socket){ .fd = fd, .lock = -1 };
}

struct listen_socket
listen_socket_copy(const struct listen_socket *l)
{
	struct listen_socket copy = listen_socket_of_fd(fcntl(l->fd, F_DUPFD_CLOEXEC, 0));

	copy.elsewhere = l->elsewhere;
	copy.unit = l->unit;
	copy.copy = copy.shared = true;
	return copy;
}

int
listen_socket_append(struct listen_socket *l, const struct listen_socket *more)
{
	struct listen_socket *behind = malloc(sizeof(*behind));

	if (behind == NULL)
		return -ENOMEM;
	*behind = *more;
	behind->next = l->next;
	l->next = behind;
	return 0;
}

void
listen_socket_set_lent(struct listen_socket *l, bool lent)
{
	for (; l != NULL; l = l->next) {
		l->lent = lent;
		l->elsewhere = lent || l->unit;
	}
}

/* The address of the file; -ENAMETOOLONG and a line. */
static int
address_of_file(const struct listen_socket_file *f, struct sockaddr_un *sun, FILE *err)
{
	*sun = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(f->path) >= sizeof(sun->sun_path)) {
		fprintf(err, "%s %s: longer than %zu characters\n", f->what, f->path, sizeof(sun->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(sun->sun_path, f->path);
	return 0;
}

int
listen_socket_try(const struct listen_socket_file *f, FILE *err)
{
	struct sockaddr_un sun;
	char copy[PATH_MAX];
	bool there;
	int rc = address_of_file(f, &sun, err);

	if (rc != 0 || (rc = probe_path(&sun, f, &there, err)) == -EADDRINUSE || rc == -EEXIST)
		return rc;
	snprintf(copy, sizeof(copy), "%s", f->path);
	const char *dir = dirname(copy);
	if (rc == 0 && faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) != 0)
		rc = -errno;
	if (rc != 0)
		fprintf(err, "%s %s: %s%s\n", f->what, f->path, strerror(-rc),
		    rc == -ENOENT       ? NO_DIRECTORY
		        : rc == -EACCES ? " (for its directory)"
		                        : "");
	return rc;
}

int
listen_socket_open(struct listen_socket *l, const struct listen_socket_file *f, FILE *err)
{
	struct sockaddr_un sun;
	const char *step = "";

	*l = LISTEN_SOCKET_NONE;
	int rc = address_of_file(f, &sun, err);
	if (rc != 0)
		return rc;
	strcpy(l->path, f->path);
	l->lock = lock_directory(f->path, f->waits);
	rc = clear_path(&sun, f, err);
	if (rc == 0) {
		l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		rc = l->fd >= 0 ? bind_file(l, &sun, f, &step) : -errno;
		if (rc != 0)
			fprintf(err, "%s %s: %s%s\n", f->what, f->path, strerror(-rc), step);
	}
	if (rc != 0)
		listen_socket_close(l);
	return rc;
}

int
listen_socket_start(struct listen_socket *l, const char *what, int backlog, FILE *err)
{
	int rc = listen(l->fd, backlog) == 0 ? 0 : -errno;

	unlock(l);
	if (rc != 0)
		fprintf(err, "%s %s: cannot listen: %s\n", what, l->path, strerror(-rc));
	return rc;
}

int
listen_socket_listen(struct listen_socket *l, const struct config_service *cfg, bool waits, FILE *err)
{
	char what[CONFIG_NAME_MAX + 32];
	const struct listen_socket_file file = {
		.what = what,
		.path = addr_path(&cfg->listen),
		.mode = cfg->listen_mode,
		.owner = cfg->listen_owner.name[0] != '\0' ? cfg->listen_owner.id : (uid_t)-1,
		.group = cfg->listen_group.name[0] != '\0' ? cfg->listen_group.id : (gid_t)-1,
		.waits = waits,
	};

	snprintf(what, sizeof(what), "service %s: socket", cfg->name);
	int rc = listen_socket_open(l, &file, err);
	if (rc != 0)
		return rc;
	rc = listen_socket_start(l, what, NET_BACKLOG, err);
	if (rc != 0)
		listen_socket_close(l);
	return rc;
}

bool
listen_socket_listens_at(const struct listen_socket *l, const struct sockaddr_storage *addr)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	return net_option(l->fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM && net_option(l->fd, SOL_SOCKET, SO_ACCEPTCONN) &&
	    getsockname(l->fd, (struct sockaddr *)&ss, &len) == 0 && addr_same_place(&ss, addr);
}

static void
close_one(struct listen_socket *l)
{
	struct stat st;

	unlock(l);
	if (l->fd < 0)
		return;
	if (l->path[0] != '\0' && !l->lent && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	close(l->fd);
	l->fd = -1;
}

int
listen_socket_capture(const struct listen_socket *l, const struct config_service *svc, const char *more, FILE *err)
{
	int rc = 0;

	for (; l != NULL && l->fd >= 0 && rc == 0 && svc->capture == CONFIG_CAPTURE_TPROXY; l = l->next)
		rc = net_listen_transparent(l->fd);
	if (rc != 0)
		fprintf(
		    err, "service %s: capture = \"tproxy\" needs CAP_NET_RAW%s: %s\n", svc->name, more, strerror(-rc));
	return rc;
}

void
listen_socket_close(struct listen_socket *l)
{
	close_one(l);
	for (struct listen_socket *more; (more = l->next) != NULL; free(more)) {
		l->next = more->next;
		close_one(more);
	}
}

int
listen_socket_list_add(struct listen_socket_list *list, const struct listen_socket *l)
{
	struct listen_socket dropped = *l;

	if (list->cnt == list->cap) {
		unsigned cap = list->cap == 0 ? 16 : list->cap * 2;
		struct listen_socket *v = realloc(list->v, cap * sizeof(*v));

		if (v == NULL) {
			listen_socket_close(&dropped);
			return -ENOMEM;
		}
		list->v = v;
		list->cap = cap;
	}
	list->v[list->cnt++] = *l;
	return 0;
}

int
listen_socket_list_add_copies(struct listen_socket_list *list, const struct listen_socket *l)
{
	int rc = 0;

	for (; l != NULL && l->fd >= 0 && rc == 0; l = l->next) {
		struct listen_socket other = *l;

		if (l->copy)
			continue;
		other.fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
		other.lock = -1;
		other.lent = true;
		other.next = NULL;
		rc = other.fd >= 0 ? listen_socket_list_add(list, &other) : -errno;
	}
	return rc;
}

void
listen_socket_list_fini(struct listen_socket_list *list)
{
	for (unsigned i = 0; i < list->cnt; i++) {
		listen_socket_set_lent(&list->v[i], true);
		listen_socket_close(&list->v[i]);
	}
	free(list->v);
	*list = (struct listen_socket_list){ 0 };
}
