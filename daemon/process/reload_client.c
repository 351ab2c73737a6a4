/* The client of a reload; see process/reload_client.h. */
#include "daemon/process/reload_client.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define WAIT_S 180 /* the daemon resolves names */

/* A connected stream, or NULL with errno. */
static FILE *
reload_client_dial(const char *path)
{
	const struct timeval wait = { .tv_sec = WAIT_S };
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

static const char *
text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

int
reload_client_run(const char *control_path, FILE *out, FILE *err)
{
	static const char request[] = "{\"command\":\"reload\"}\n";
	FILE *f = reload_client_dial(control_path);
	int rc = f != NULL ? 0 : -errno;

	if (rc == 0 && send(fileno(f), request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		rc = -errno;
	json_t *root = rc == 0 ? json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	const json_t *error = json_object_get(root, "error"), *data = json_object_get(root, "data");

	if (json_is_object(error)) {
		fprintf(err, "reload refused, the old configuration stays in force: %s\n", text_of(error, "text"));
		rc = -ECANCELED;
	} else if (json_is_object(data)) {
		fputs(text_of(data, "messages"), out);
	} else {
		rc = rc != 0 ? rc : -ETIMEDOUT;
		fprintf(err, "the daemon at %s cannot be asked: %s\n", control_path, strerror(-rc));
	}
	json_decref(root);
	if (f != NULL)
		fclose(f);
	return rc;
}
