/* What smcrd -t says of addresses, ports and sockets that cannot be had. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/config/config_int.h"
#include "daemon/process/preflight.h"
#include "unit.h"

static char *text, dir[] = "/tmp/check_preflight.XXXXXX";
static int fd = -1;

static void
setup(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void
teardown(void)
{
	char path[128];

	free(text);
	text = NULL;
	if (fd >= 0)
		close(fd);
	fd = -1;
	snprintf(path, sizeof(path), "%s/s", dir);
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0);
}

UNIT_FIXTURE(setup, teardown);

/* control: the path below the directory. */
static const char *
advise(const char *control, const char *rest)
{
	struct config *cfg;
	char file[1024];
	size_t len;

	snprintf(file, sizeof(file), "control = { path = \"%s/%s\"; };\n%s", dir, control, rest);
	ck_assert_int_eq(config_parse("t.conf", file, strlen(file), CONFIG_NO_LOOKUP, stdout, &cfg), 0);
	free(text);
	FILE *f = open_memstream(&text, &len);
	preflight_listen(cfg, f);
	fclose(f);
	config_free(cfg);
	return text;
}

static unsigned
bound_port(bool listens)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);

	fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(listens ? listen(fd, 4) : 0, 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	return ntohs(sin.sin_port);
}

/* 203.0.113.0/24 is nobody's (RFC 5737). */
START_TEST(addresses_that_are_not_here)
{
	ck_assert_str_eq(advise("s",
	                     "ingress = ( { name = \"a\"; listen = \"203.0.113.7:8080\"; to = \"h:81\"; },\n"
	                     "{ name = \"f\"; listen = \"203.0.113.8:8080\"; to = \"h:81\"; freebind = true; } );"),
	    "t.conf:2: warning: ingress \"a\" cannot listen on 203.0.113.7:8080 now: Cannot assign requested address\n");
}

START_TEST(ports_of_others)
{
	unsigned port = bound_port(true);
	char rest[256], want[256];

	snprintf(rest, sizeof(rest), "egress = ( { name = \"a\"; listen = \"0.0.0.0:%u\"; to = \"h:81\"; } );", port);
	snprintf(want, sizeof(want),
	    "t.conf:2: warning: egress \"a\" cannot listen on 0.0.0.0:%u now: Address already in use (ss -ltnp shows by "
	    "what)\n",
	    port);
	ck_assert_str_eq(advise("s", rest), want);
	snprintf(rest, sizeof(rest), "metrics = { listen = \"127.0.0.1:%u\"; };", port);
	ck_assert_ptr_nonnull(strstr(advise("s", rest), "warning: metrics cannot listen on 127.0.0.1:"));
}

/* One that is bound and does not listen is another check's, or a daemon's that starts at this moment. */
START_TEST(a_check_disturbs_no_other)
{
	unsigned port = bound_port(false);
	char rest[256];

	snprintf(rest, sizeof(rest), "egress = ( { name = \"a\"; listen = \"127.0.0.1:%u\"; to = \"h:81\"; } );", port);
	ck_assert_str_eq(advise("s", rest), "");
	ck_assert_int_eq(listen(fd, 4), 0);
}

START_TEST(files_that_cannot_be_made)
{
	char want[256], rest[256], path[128];

	ck_assert_str_eq(advise("s", ""), "");
	snprintf(want, sizeof(want),
	    "t.conf: warning: control socket %s/no/s: No such file or directory (its directory does not exist)\n", dir);
	ck_assert_str_eq(advise("no/s", ""), want);
	snprintf(rest, sizeof(rest), "ingress = ( { name = \"a\"; listen = \"unix:%s/no/t\"; to = \"h:81\"; } );", dir);
	ck_assert_ptr_nonnull(strstr(advise("s", rest), "t.conf:2: warning: ingress \"a\" "));
	snprintf(path, sizeof(path), "%s/s", dir);
	close(creat(path, 0600));
	ck_assert_ptr_nonnull(strstr(advise("s", ""), "a file of this name exists that is not a socket\n"));
	ck_assert_int_eq(unlink(path), 0);
	if (geteuid() == 0) /* may write anywhere */
		return;
	ck_assert_int_eq(chmod(dir, 0500), 0);
	ck_assert_ptr_nonnull(strstr(advise("s", ""), "Permission denied (for its directory)\n"));
	ck_assert_int_eq(chmod(dir, 0700), 0);
}

/* A socket of another program; a dead one is replaced at the start. */
START_TEST(sockets_of_others)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char rest[256];

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/s", dir);
	snprintf(rest, sizeof(rest), "ingress = ( { name = \"a\"; listen = \"unix:%s/s\"; to = \"h:81\"; } );", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	ck_assert_ptr_nonnull(strstr(advise("c", rest), "a running daemon listens there"));
	close(fd);
	fd = -1;
	ck_assert_str_eq(advise("c", rest), "");
	ck_assert_int_eq(access(sun.sun_path, F_OK), 0);
}
