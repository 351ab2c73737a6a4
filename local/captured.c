/* smcrd-captured SERVICE PROGRAM [ARGUMENT...], of smcrd-run: executes the program if connections from here, this control group
 * and user, are led to smcrd. It proves that by connecting to addresses that no host has (RFC 7600's dummy address, and one of
 * IPv6's discard prefix), which an ingress for all destinations answers with "smcrd SERVICE". SERVICE "": any. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_PORT 9
#define PROBE_MS 2000
#define ANSWER "smcrd "

/* What answers there, without the end of the line; false: nothing. */
static bool
ask_probe(const struct sockaddr *to, socklen_t len, char *answer, size_t cap)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0)
		return false;
	rc = connect(fd, to, len) == 0 || (errno == EINPROGRESS && poll(&p, 1, PROBE_MS) == 1);
	p.events = POLLIN;
	while (rc && n > 0 && got + 1 < cap && poll(&p, 1, PROBE_MS) == 1)
		if ((n = recv(fd, answer + got, cap - 1 - got, 0)) > 0)
			got += (size_t)n;
	close(fd);
	answer[got] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return n == 0 && strncmp(answer, ANSWER, strlen(ANSWER)) == 0;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PROBE_PORT) };
	struct sockaddr_in6 at6 = { .sin6_family = AF_INET6, .sin6_port = htons(PROBE_PORT) };
	char answer[128];

	if (argc < 3)
		return 2;
	inet_pton(AF_INET, "192.0.0.8", &at.sin_addr);
	inet_pton(AF_INET6, "100::8", &at6.sin6_addr);
	if (!ask_probe((struct sockaddr *)&at, sizeof(at), answer, sizeof(answer)) &&
	    !ask_probe((struct sockaddr *)&at6, sizeof(at6), answer, sizeof(answer))) {
		fprintf(stderr, "smcrd-run: not captured: load the rules (smcrctl capture %s)\n",
		    argv[1][0] != '\0' ? argv[1] : "SERVICE");
		return 1;
	}
	if (argv[1][0] != '\0' && strcmp(answer + strlen(ANSWER), argv[1]) != 0) {
		fprintf(stderr, "smcrd-run: captured by %s, not by %s\n", answer + strlen(ANSWER), argv[1]);
		return 1;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "smcrd-run: %s: %s\n", argv[2], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
