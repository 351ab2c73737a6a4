/* The control socket's file; see control_listen.h. */
#include "daemon/control/control_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 16
#define LOCK_TRIES 100
#define LOCK_WAIT_NS 10000000

/*
 * Two daemons that start at once must not both find a dead socket and then
 * remove each other's: the directory is locked between the look and listen().
 * -1 when it cannot be had, which is no reason not to start.
 */
static int
lock_directory(const char *path)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_WAIT_NS }, NULL);
	return fd;
}

static void
unlock(struct control_listen *l)
{
	if (l->lock >= 0)
		close(l->lock);
	l->lock = -1;
}

/* 0: nobody listens there; -EADDRINUSE: a process does; other: the error of connect(). */
static int
probe(const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int rc = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ? 0 : errno;
	close(fd);
	if (rc == 0 || rc == EAGAIN || rc == EINPROGRESS)
		return -EADDRINUSE;
	return rc == ECONNREFUSED || rc == ENOENT ? 0 : -rc;
}

/* Makes way for our socket. */
static int
clear_path(const struct sockaddr_un *sun, FILE *err)
{
	struct stat st;

	if (lstat(sun->sun_path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		fprintf(err, "control socket %s: there is a file of this name that is no socket\n", sun->sun_path);
		return -EEXIST;
	}
	int rc = probe(sun);
	if (rc == -EADDRINUSE) {
		fprintf(err, "control socket %s: a running daemon listens there; stop it or set another path\n",
		    sun->sun_path);
		return rc;
	}
	if (rc == 0 && unlink(sun->sun_path) != 0)
		rc = -errno;
	if (rc != 0)
		fprintf(err, "control socket %s: cannot replace the old one: %s\n", sun->sun_path, strerror(-rc));
	return rc;
}

static int
bind_file(struct control_listen *l, const struct sockaddr_un *sun, uint32_t mode)
{
	struct stat st;
	/* Nobody may connect before the mode is set. */
	mode_t old = umask(0777);
	int rc = bind(l->fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ? 0 : -errno;

	umask(old);
	if (rc != 0)
		return rc;
	if (chmod(sun->sun_path, mode & 0777) != 0 || lstat(sun->sun_path, &st) != 0) {
		rc = -errno;
		unlink(sun->sun_path);
		return rc;
	}
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

int
control_listen_open(struct control_listen *l, const char *path, uint32_t mode, FILE *err)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	*l = (struct control_listen){ .fd = -1, .lock = -1 };
	if (strlen(path) >= sizeof(sun.sun_path)) {
		fprintf(err, "control socket %s: longer than %zu characters\n", path, sizeof(sun.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(sun.sun_path, path);
	strcpy(l->path, path);
	l->lock = lock_directory(path);
	int rc = clear_path(&sun, err);
	if (rc == 0) {
		l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		rc = l->fd >= 0 ? bind_file(l, &sun, mode) : -errno;
		if (rc != 0)
			fprintf(err, "control socket %s: %s%s\n", path, strerror(-rc),
			    rc == -ENOENT ? " (its directory has to be made first)" : "");
	}
	if (rc != 0)
		control_listen_close(l);
	return rc;
}

int
control_listen_start(struct control_listen *l, FILE *err)
{
	int rc = listen(l->fd, BACKLOG) == 0 ? 0 : -errno;

	unlock(l);
	if (rc != 0)
		fprintf(err, "control socket %s: cannot listen: %s\n", l->path, strerror(-rc));
	return rc;
}

void
control_listen_close(struct control_listen *l)
{
	struct stat st;

	unlock(l);
	if (l->fd < 0)
		return;
	close(l->fd);
	l->fd = -1;
	if (lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
}
