/* Starting in the background; see process/background.h. */
#include "daemon/process/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn)) wait_for(pid_t pid, int fd)
{
	char word;
	int status = 0;
	ssize_t n;

	do
		n = read(fd, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(EXIT_SUCCESS);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EXIT_FAILURE);
}

int
background_start(int *fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		int rc = -errno;

		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	if (pid > 0) {
		close(ends[1]);
		wait_for(pid, ends[0]);
	}
	close(ends[0]);
	*fd = ends[1];
	(void)setsid();
	return 0;
}

void
background_ready(int fd)
{
	if (fd < 0)
		return;
	(void)!write(fd, "1", 1);
	close(fd);
}
