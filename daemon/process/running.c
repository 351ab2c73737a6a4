/* See process/running.h. */
#include "daemon/process/running.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/instance.h"
#include "daemon/process/reload_client.h"

#define PATH_BYTES 256

static const char *
file_of(const char *instance, char buf[PATH_BYTES])
{
	(void)instance_control_path(instance, buf, PATH_BYTES - sizeof(".at"));
	return strcat(buf, ".at");
}

int
running_open(const char *instance)
{
	char file[PATH_BYTES];

	return open(file_of(instance, file), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void
running_note(int fd, const char *control_path)
{
	char line[PATH_BYTES];
	const int len = snprintf(line, sizeof(line), "%d %s\n", (int)getpid(), control_path);

	if (fd < 0)
		return;
	/* One write. What is left of a longer line stands behind its end. */
	if (len < (int)sizeof(line))
		(void)!write(fd, line, (size_t)len);
	close(fd);
}

void
running_forget(const char *instance)
{
	char file[PATH_BYTES];

	(void)unlink(file_of(instance, file));
}

const char *
running_find(const char *instance, const char *configured, char *buf, size_t cap)
{
	char file[PATH_BYTES], line[PATH_BYTES] = "", *path;

	if (reload_client_find(configured) > 0)
		return configured;
	const int fd = open(file_of(instance, file), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return configured;
	const ssize_t len = read(fd, line, sizeof(line) - 1);
	close(fd);
	const long pid = strtol(line, &path, 10);
	if (len <= 0 || pid <= 0 || *path++ != ' ')
		return configured;
	path[strcspn(path, "\n")] = '\0';
	if (strlen(path) >= cap || reload_client_find(path) != pid)
		return configured;
	strcpy(buf, path);
	return buf;
}
