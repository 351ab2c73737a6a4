/* A build without c-ares and libusrsctp, in any build: this program is one, with resolver_none.c in the resolver's place. Names are
 * resolved only when the file is read; SRV records and SCTP in user space are refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/process/preflight.h"
#include "daemon/config/config_int.h"
#include "daemon/names/names.h"
#include "daemon/names/resolver.h"
#include "unit.h"

bool
config_names_wait(void)
{
	return false;
}

bool
config_has_user_sctp(void)
{
	return false;
}

static char *text; /* of the last look at a file, or plan */
static struct config *cfg, *next;

static void
teardown(void)
{
	config_free(cfg);
	config_free(next);
	cfg = next = NULL;
	free(text);
	text = NULL;
}

UNIT_FIXTURE(NULL, teardown);

static int
parse_text(const char *file, struct config **out)
{
	size_t len;

	free(text);
	FILE *err = open_memstream(&text, &len);
	int rc = config_parse("t.conf", file, strlen(file), 0, err, out);
	fclose(err);
	return rc;
}

static int
parse(const char *to, struct config **out)
{
	char file[256];

	snprintf(
	    file, sizeof(file), "egress = ( { name = \"x\"; listen = \"127.0.0.1:15001\"; to = \"%s\"; } );\n", to);
	return parse_text(file, out);
}

#define SCTP_DEVICE "devices = ( { type = \"siw\"; address = \"127.0.0.1\"; transport = \"sctp\";"

/* The kernel may have it. */
START_TEST(sctp_in_user_space_is_refused_with_the_reason)
{
	ck_assert_int_lt(parse_text(SCTP_DEVICE "\nsctp_stack = \"user\"; } );", &cfg), 0);
	ck_assert_str_eq(
	    text, "t.conf:2: devices.sctp_stack \"user\" needs libusrsctp, which this smcrd was built without\n");
	ck_assert_msg(parse_text(SCTP_DEVICE " } );", &cfg) == 0, "%s", text);
	ck_assert_msg(parse_text(SCTP_DEVICE "sctp_stack = \"kernel\"; } );", &next) == 0, "%s", text);
}

START_TEST(srv_records_are_refused_with_the_reason)
{
	ck_assert_int_lt(parse("srv:_db._tcp.example.com", &cfg), 0);
	ck_assert_str_eq(
	    text, "t.conf:1: egress.to has \"srv:\": SRV records need c-ares, which this smcrd was built without\n");
}

START_TEST(a_name_has_its_addresses_when_the_file_is_read)
{
	ck_assert_msg(parse("localhost:5432", &cfg) == 0, "%s", text);
	ck_assert_uint_gt(cfg->services[0].to[0].addr_cnt, 0);
	ck_assert_uint_eq(addr_port(&cfg->services[0].to[0].addrs[0]), 5432);
}

static const char *
advice(const struct config *of)
{
	size_t len;

	free(text);
	FILE *f = open_memstream(&text, &len);
	preflight_print(of, 0, f);
	fclose(f);
	return text;
}

START_TEST(smcrd_t_says_that_names_are_not_looked_up_again)
{
	static const char words[] =
	    "t.conf:1: warning: names, like localhost:5432 of egress \"x\", are looked up at start and at a "
	    "reload only: this smcrd was built without c-ares\n";

	ck_assert_int_eq(parse("localhost:5432", &cfg), 0);
	ck_assert_msg(strstr(advice(cfg), words) != NULL, "%s", text);
	ck_assert_int_eq(parse("127.0.0.1:5432", &next), 0);
	ck_assert_msg(strstr(advice(next), "c-ares") == NULL, "%s", text);
}

/* -EAGAIN when no name server answers, which may be better later. */
START_TEST(a_name_that_is_not_found_is_a_mistake)
{
	ck_assert_int_lt(parse("no-such.invalid:5432", &cfg), 0);
	ck_assert_msg(strncmp(text, "t.conf:1: cannot resolve no-such.invalid: ", 42) == 0, "%s", text);
}

START_TEST(other_addresses_are_a_change_of_the_service)
{
	struct config_plan plan;
	size_t len;

	ck_assert_int_eq(parse("localhost:5432", &cfg), 0);
	ck_assert_int_eq(parse("localhost:5432", &next), 0);
	free(text);
	FILE *f = open_memstream(&text, &len);
	config_plan(cfg, next, &plan, f);
	ck_assert_uint_eq(plan.changed, 0);
	ck_assert_int_eq(addr_parse_port("192.0.2.1:5432", &next->services[0].to[0].addrs[0]), 0);
	config_plan(cfg, next, &plan, f);
	fclose(f);
	ck_assert_uint_eq(plan.changed, 1);
	ck_assert_str_eq(text, "service x changed: to\n");
}

static void
on_came(void *arg, const char *service)
{
	(void)arg;
	ck_abort_msg("%s", service);
}

START_TEST(names_are_not_resolved_afterwards)
{
	struct loop *loop = loop_new();
	struct targets_all all;
	struct names *names;
	struct endpoint e;

	ck_assert_int_eq(parse("localhost:5432", &cfg), 0);
	targets_all_init(&all);
	struct targets *t = targets_get(&all, &cfg->services[0]);
	ck_assert_int_eq(names_new(loop, &all, on_came, NULL, &names), 0);
	names_apply(names, cfg);
	names_apply(names, cfg);
	/* It has what the file's reader found, and waits for nothing. */
	ck_assert(targets_address(t, 0, &e));
	ck_assert(addr_same_place(&e.addr, &cfg->services[0].to[0].addrs[0]));
	ck_assert(!targets_pending(t));
	/* What a reload finds else has other targets. */
	ck_assert_int_eq(parse("localhost:5432", &next), 0);
	struct targets *again = targets_get(&all, &next->services[0]);
	ck_assert_ptr_eq(again, t);
	ck_assert_int_eq(addr_parse_port("192.0.2.1:5432", &next->services[0].to[0].addrs[0]), 0);
	struct targets *other = targets_get(&all, &next->services[0]);
	ck_assert_ptr_ne(other, t);
	names_free(names);
	targets_put(&all, t);
	targets_put(&all, again);
	targets_put(&all, other);
	targets_all_fini(&all);
	loop_free(loop);
}

/* No answer is to come. */
START_TEST(a_client_waits_for_no_name)
{
	struct targets_all all;

	ck_assert_int_eq(parse("localhost:5432", &cfg), 0);
	cfg->services[0].to[0].addr_cnt = 0;
	targets_all_init(&all);
	struct targets *t = targets_get(&all, &cfg->services[0]);
	ck_assert(!targets_pending(t));
	targets_put(&all, t);
	targets_all_fini(&all);
}

static unsigned answers;

static void
on_answer(void *arg, const struct resolver_answer *a)
{
	ck_assert_ptr_eq(arg, &answers);
	ck_assert_str_eq(a->why, "this smcrd was built without c-ares");
	ck_assert(a->cnt == 0 && !a->lasts);
	answers++;
}

START_TEST(a_resolver_that_is_asked_all_the_same_says_why)
{
	struct resolver *r = NULL;

	ck_assert_int_eq(resolver_new(NULL, &r), -ENOSYS);
	ck_assert_ptr_null(r);
	resolver_ask(r, "db.example", true, 1, on_answer, &answers);
	ck_assert_uint_eq(answers, 1);
	ck_assert_int_eq(resolver_turn(r, 5), INT64_MAX);
	resolver_free(r);
}
