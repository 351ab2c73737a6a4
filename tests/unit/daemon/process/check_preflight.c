/* What smcrd -t advises. */
#include "daemon/process/preflight.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "daemon/config/config_int.h"
#include "unit.h"

/* A build that has all, whatever this one has; the other one is check_config_built's. */
bool
config_names_wait(void)
{
	return true;
}

bool
config_has_user_sctp(void)
{
	return true;
}

static char *text;

static void
teardown(void)
{
	free(text);
	text = NULL;
}

UNIT_FIXTURE(NULL, teardown);

static const char *
advise(const char *file, unsigned wait_ms)
{
	struct config *cfg;
	size_t len;

	ck_assert_int_eq(config_parse("t.conf", file, strlen(file), CONFIG_NO_LOOKUP, stdout, &cfg), 0);
	free(text);
	FILE *f = open_memstream(&text, &len);
	preflight_print(cfg, wait_ms, f);
	fclose(f);
	config_free(cfg);
	return text;
}

/* A socket that listens on a port of the kernel's choice, which is returned. */
static unsigned
listener(int *fd, int backlog)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(*fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(listen(*fd, backlog), 0);
	ck_assert_int_eq(getsockname(*fd, (struct sockaddr *)&sin, &len), 0);
	return ntohs(sin.sin_port);
}

START_TEST(nothing_to_do)
{
	ck_assert_str_eq(advise("", 0), "t.conf: warning: no ingress and no egress: nothing to do\n");
}

#define ALLOW "allow = [ \"192.0.2.1\" ];"

START_TEST(permitted_clients)
{
	ck_assert_str_eq(advise("ingress = ( { name = \"a\"; listen = \"0.0.0.0:80\"; to = \"h:81\"; },\n"
	                        "{ name = \"b\"; listen = \"0.0.0.0:82\"; to = \"h:81\"; " ALLOW " },\n"
	                        "{ name = \"c\"; listen = \"127.0.0.1:86\"; to = \"h:81\"; },\n"
	                        "{ name = \"d\"; listen = \"unix:/s\"; to = \"h:81\"; },\n"
	                        "{ name = \"e\"; listen = \"[::1]:83\"; to = \"h:81\"; } );\n"
	                        "egress = ( { name = \"f\"; listen = \"[::]:84\"; to = \"localhost:85\"; } );",
	                     0),
	    "t.conf:1: warning: ingress \"a\" has no allow list: any client that reaches 0.0.0.0:80 can connect to h:81\n"
	    "t.conf:6: warning: egress \"f\" has no allow list: any client that reaches [::]:84 can connect to localhost:85\n");
}

/* What a peer says of its clients is worth as much as its name. */
START_TEST(clients_of_peers_without_a_proven_name)
{
	static const char secure
	    [] = "tls = { name = \"a\"; psk = \"/dev/null\"; };\n",
      service[] =
	    "egress = ( { name = \"a\"; listen = \"127.0.0.1:86\"; to = \"127.0.0.1:9\"; clients = [ \"10.0.0.0/8\" ];\n"
	    "client_address = \"%s\"; %s } );";
	const struct {
		const char *address, *more;
		bool warned;
	} rows[] = {
		{ "connect", ALLOW, true },
		{ "connect", "secure = \"accept\"; peer_names = [ \"*\" ];", true },
		{ "connect", "secure = \"auth\"; peer_names = [ \"*\" ];", false },
		{ "proxy_v2", ALLOW, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char one[500], conf[600];

		snprintf(one, sizeof(one), service, rows[i].address, rows[i].more);
		snprintf(conf, sizeof(conf), "%s%s", strstr(rows[i].more, "secure") != NULL ? secure : "", one);
		ck_assert_msg(
		    (strstr(advise(conf, 0), "whose own names are not proven") != NULL) == rows[i].warned, "%s", conf);
	}
}

START_LOOP_TEST(destinations_of_peers_without_a_proven_name, 0, 2)
{
	static const char *const more[] = { "", "secure = \"auth\"; peer_names = [ \"*\" ];" };
	char conf[600];

	snprintf(conf, sizeof(conf),
	    "%segress = ( { name = \"a\"; listen = \"127.0.0.1:86\"; to = \"requested\"; to_allow = [ \"127.0.0.1:9\" ]; " ALLOW
	    " %s } );",
	    _i == 1 ? "tls = { name = \"a\"; psk = \"/dev/null\"; };\n" : "", more[_i]);
	ck_assert_msg((strstr(advise(conf, 0), "connects where peers want") != NULL) == (_i == 0), "%s", conf);
}

START_TEST(permitted_clients_of_metrics)
{
	static const char warned[] =
	    "t.conf: warning: no ingress and no egress: nothing to do\n"
	    "t.conf: warning: metrics has no allow list: any client that reaches 0.0.0.0:9471 can read it\n";

	ck_assert_str_eq(advise("metrics = { listen = \"0.0.0.0:9471\"; };", 0), warned);
	ck_assert_ptr_null(strstr(advise("metrics = { listen = \"0.0.0.0:9471\"; " ALLOW " };", 0), "metrics"));
	ck_assert_ptr_null(strstr(advise("metrics = { listen = \"127.0.0.1:9471\"; };", 0), "metrics"));
	ck_assert_ptr_null(strstr(advise("metrics = { listen = \"unix:/s\"; };", 0), "metrics"));
}

static const char *
advise_server(const char *to, unsigned wait_ms)
{
	char file[256];

	snprintf(file, sizeof(file), "egress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"%s\"; } );", to);
	return advise(file, wait_ms);
}

START_TEST(servers_that_are_there_and_not)
{
	char to[64];
	int fd;
	unsigned port = listener(&fd, 4);

	snprintf(to, sizeof(to), "127.0.0.1:%u", port);
	ck_assert_str_eq(advise_server(to, 5000), "");
	int client = accept(fd, NULL, NULL);
	ck_assert_int_ge(client, 0);
	char byte;
	ck_assert_int_eq(recv(client, &byte, 1, 0), 0); /* not a byte, and the end */
	close(client);
	close(fd);
	ck_assert_ptr_nonnull(
	    strstr(advise_server(to, 5000), "t.conf:1: warning: egress \"a\": its server 127.0.0.1:"));
	ck_assert_ptr_nonnull(strstr(text, " cannot be connected now: Connection refused\n"));
	advise_server("unix:/no/such/socket", 5000);
	ck_assert_str_eq(text,
	    "t.conf:1: warning: egress \"a\": its server unix:/no/such/socket cannot be connected now: "
	    "No such file or directory\n");
}

/* A backlog that is full leaves SYNs without an answer. */
START_TEST(a_silent_server_takes_no_longer_than_its_timeout)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char where[64];
	int fd, clients[4];

	sin.sin_port = htons((uint16_t)listener(&fd, 0));
	for (unsigned i = 0; i < 4; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(clients[i], (struct sockaddr *)&sin, sizeof(sin));
	}
	snprintf(where, sizeof(where), "127.0.0.1:%u", ntohs(sin.sin_port));
	const int64_t from = clock_ns();
	ck_assert_ptr_nonnull(strstr(advise_server(where, 200), " cannot be connected now: it does not answer\n"));
	const double ms = (double)(clock_ns() - from) / 1e6;
	ck_assert_msg(ms >= 199, "%f ms", ms);
	for (unsigned i = 0; i < 4; i++)
		close(clients[i]);
	close(fd);
}

/* The peer of an ingress hears nothing of it. */
START_TEST(peers_are_left_alone)
{
	char file[256];
	int fd;
	unsigned port = listener(&fd, 4);

	snprintf(file, sizeof(file),
	    "ingress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.1:%u\"; } );", port);
	ck_assert_str_eq(advise(file, 1000), "");
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(accept(fd, NULL, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
	close(fd);
}

/* Whether a name server says that there is no such name (RFC 6761), none is there, or none answers in time. */
START_TEST(srv_records_that_are_not_there)
{
	static const char first[] = "t.conf:1: warning: egress \"a\": cannot resolve srv:_x._tcp.invalid now: ";
	static const char second[] = "t.conf:2: warning: ingress \"b\": cannot resolve srv:_y._tcp.invalid now: ";
	static const char end[] = "; it waits until the name is there\n";

	if (!config_names_wait())
		return;
	const char *said = advise(
	    "egress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"srv:_x._tcp.invalid\"; } );\n"
	    "ingress = ( { name = \"b\"; listen = \"127.0.0.1:81\"; to = \"srv:_y._tcp.invalid\"; } );",
	    300);
	const char *a = strstr(said, first), *b = strstr(said, second);
	ck_assert_msg(a != NULL && b != NULL, "%s", said);
	ck_assert_ptr_nonnull(strstr(a, end));
	ck_assert_ptr_nonnull(strstr(b, end));
	ck_assert_ptr_null(strstr(said, "cannot be connected"));
}

START_TEST(srv_records_are_bounded)
{
	char file[16384] = "ingress = (";

	if (!config_names_wait())
		return;
	for (unsigned i = 0; i <= PREFLIGHT_RECORDS_MAX; i++)
		snprintf(file + strlen(file), sizeof(file) - strlen(file),
		    "%s{ name = \"s%u\"; listen = \"127.0.0.1:%u\"; to = \"srv:_s%u._tcp.invalid\"; }",
		    i > 0 ? "," : "", i, 1000 + i, i);
	strcat(file, ");");
	ck_assert_ptr_nonnull(
	    strstr(advise(file, 0), "t.conf: warning: not all SRV records were looked up: they are too many\n"));
}

START_TEST(servers_are_bounded)
{
	size_t cap = 64 * 1024, n = 0;
	char *file = malloc(cap);

	ck_assert_ptr_nonnull(file);
	n += (size_t)snprintf(file + n, cap - n, "egress = (");
	for (unsigned i = 0; i <= PREFLIGHT_SERVERS_MAX; i++)
		n += (size_t)snprintf(file + n, cap - n,
		    "%s{ name = \"s%u\"; listen = \"127.0.0.1:%u\"; to = \"unix:/no/s\"; }", i > 0 ? "," : "", i,
		    1000 + i);
	snprintf(file + n, cap - n, ");");
	const char *said = advise(file, 0);
	char *last = strstr(said,
	    "t.conf:1: warning: servers of egress \"s256\" and of those behind it were not tried: they are too many\n");
	ck_assert_msg(last != NULL, "%s", said);
	unsigned lines = 0;
	for (const char *p = said; *p != '\0'; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, PREFLIGHT_SERVERS_MAX + 1);
	free(file);
}
