/* Starting in the background; see process/background.h. */
#include "daemon/process/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn)) wait_for(int fd)
{
	char code = EXIT_FAILURE;
	ssize_t n;

	do
		n = read(fd, &code, 1);
	while (n < 0 && errno == EINTR);
	_exit(code);
}

/* By way of a process that ends: the daemon is init's child at once, and systemd can see its end. */
int
background_start(int *fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	const pid_t pid = fork();
	if (pid < 0) {
		const int rc = -errno;

		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	if (pid > 0) {
		close(ends[1]);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		wait_for(ends[0]);
	}
	close(ends[0]);
	(void)setsid();
	if (fork() != 0)
		_exit(EXIT_SUCCESS); /* also if it fails: the pipe closes */
	*fd = ends[1];
	return 0;
}

static void
background_end(int fd, int code)
{
	const char byte = (char)code;

	if (fd < 0)
		return;
	(void)!write(fd, &byte, 1);
	close(fd);
}

void
background_ready(int fd)
{
	background_end(fd, EXIT_SUCCESS);
}

void
background_failed(int fd, int code)
{
	background_end(fd, code);
}
