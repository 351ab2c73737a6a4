/* A client of the control socket; see process/control_ask.h. */
#include "daemon/process/control_ask.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

FILE *
control_dial(const char *path, unsigned wait_s)
{
	const struct timeval wait = { .tv_sec = (time_t)wait_s };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	errno = ENAMETOOLONG;
	if (strlen(path) >= sizeof(sun.sun_path))
		return NULL;
	strcpy(sun.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)); /* connect() */
	FILE *f = connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 ? fdopen(fd, "r") : NULL;
	if (f == NULL) {
		const int error = errno;

		close(fd);
		errno = error;
	}
	return f;
}

json_t *
control_ask(FILE *f, const char *request)
{
	if (send(fileno(f), request, strlen(request), MSG_NOSIGNAL) < 0)
		return NULL;
	errno = ETIMEDOUT;
	return json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
}
