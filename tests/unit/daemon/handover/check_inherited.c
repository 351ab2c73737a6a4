/* Listening sockets below port 1024: obstacles are reported while the process has the rights to detect them. */
#include "daemon/handover/inherited.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/addr.h"
#include "own_netns.h"
#include "unit.h"

static struct config_service svc;
static struct config cfg;
static char *said;

static void
setup(void)
{
	memset(&svc, 0, sizeof(svc));
	strcpy(svc.name, "web");
	ck_assert_int_eq(addr_parse_port("127.0.0.1:81", &svc.listen), 0);
	cfg = (struct config){ .services = &svc, .service_cnt = 1 };
}

static void
teardown(void)
{
	free(said);
	said = NULL;
}

UNIT_FIXTURE(setup, teardown);

static int
open_it(struct inherited *e)
{
	struct listen_socket_list passed = { 0 };
	size_t len;

	free(said);
	FILE *err = open_memstream(&said, &len);
	int rc = inherited_open(e, &cfg, 2, NULL, &passed, err);
	fclose(err);
	listen_socket_list_fini(&passed);
	return rc;
}

/* In a process of its own, as it gives its rights up. 0 when all is as it should be. */
static int
without_the_right(void)
{
	struct inherited e;

	if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
		return 2;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(fd, (const struct sockaddr *)&svc.listen, addr_len(&svc.listen)) == 0) {
		puts("# any port is for everybody here");
		return 0;
	}
	if (open_it(&e) != -EACCES)
		return 3;
	inherited_fini(&e);
	return strcmp(said,
	           "service web: cannot listen on 127.0.0.1:81: Permission denied: ports below 1024 take root or "
	           "CAP_NET_BIND_SERVICE\n") == 0
	    ? 0
	    : 4;
}

START_TEST(the_right_to_a_low_port_is_named)
{
	int status;

	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		_exit(without_the_right());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

START_TEST(a_low_port_that_is_taken_is_called_that)
{
	struct inherited e;

	if (!own_netns("link set lo up\n"))
		return;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&svc.listen, addr_len(&svc.listen)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(open_it(&e), -EADDRINUSE);
	ck_assert_str_eq(said, "service web: cannot listen on 127.0.0.1:81: Address already in use\n");
	inherited_fini(&e);
	close(fd);
	ck_assert_int_eq(open_it(&e), 0);
	ck_assert_uint_eq(e.used, 1);
	ck_assert_int_ge(e.socks[0].fd, 0);
	inherited_fini(&e);
}

START_TEST(other_ports_are_left_to_the_workers)
{
	struct inherited e;

	ck_assert_int_eq(addr_parse_port("127.0.0.1:1024", &svc.listen), 0);
	ck_assert_int_eq(open_it(&e), 0);
	ck_assert_uint_eq(e.used, 0);
	inherited_fini(&e);
}
