/* The table follows the kernel, in a network namespace of the test's own. */
#include "daemon/device/netwatch.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/log.h"
#include "own_netns.h"
#include "unit.h"

static struct loop *loop;
static struct netwatch nw;
static unsigned turns;

static int64_t
turn(void *arg, int64_t now_ns)
{
	(void)arg;
	if (++turns == 2)
		loop_stop(loop);
	return now_ns + 5000000;
}

static void
once(void)
{
	turns = 0;
	ck_assert_int_eq(loop_run(loop), 0);
}

static bool
start(const char *interfaces)
{
	log_init(LOG_LVL_ERROR);
	if (!own_netns(interfaces))
		return false;
	loop = loop_new();
	ck_assert_int_eq(loop_add_turn(loop, turn, NULL), 0);
	ck_assert_int_eq(netwatch_init(&nw, loop), 0);
	return true;
}

static void
stop(void)
{
	netwatch_fini(&nw);
	loop_free(loop);
}

static const struct netif *
iface(const char *name)
{
	const struct netifs *t = &nw.table;

	for (unsigned i = 0; i < t->if_cnt; i++)
		if (strcmp(t->ifs[i].name, name) == 0)
			return &t->ifs[i];
	return NULL;
}

static bool
is_up(const char *name)
{
	const struct netif *i = iface(name);

	return i != NULL && i->up;
}

static const struct netif_addr *
address(const char *text)
{
	struct sockaddr_storage ss;

	ck_assert_int_eq(addr_parse(text, &ss), 0);
	return netifs_find(&nw.table, &ss);
}

#define UNTIL(cond)                                                              \
	do {                                                                     \
		int64_t end = loop_now(loop) + 10000000000;                      \
		while (!(cond)) {                                                \
			ck_assert_msg(loop_now(loop) < end, "never: %s", #cond); \
			once();                                                  \
		}                                                                \
	} while (0)

START_TEST(follows_what_happens)
{
	if (!start("link set lo up\nlink add e1 type veth peer name p1\naddr add 10.9.1.1/24 dev e1\n"
	           "link set e1 up\nlink set p1 up\n"))
		return;
	ck_assert(is_up("lo"));
	ck_assert(iface("lo")->loopback);
	ck_assert_ptr_nonnull(address("10.9.1.1"));
	ck_assert_ptr_nonnull(address("127.0.0.1"));
	UNTIL(is_up("e1")); /* it takes the kernel a moment */
	(void)netwatch_take_change(&nw);
	/* the carrier */
	ck_assert(ip_batch("link set p1 down\n"));
	UNTIL(!is_up("e1"));
	ck_assert(netwatch_take_change(&nw));
	ck_assert(!netwatch_take_change(&nw));
	ck_assert(ip_batch("link set p1 up\n"));
	UNTIL(is_up("e1"));
	/* the switch */
	ck_assert(ip_batch("link set e1 down\n"));
	UNTIL(!is_up("e1"));
	ck_assert_ptr_nonnull(address("10.9.1.1"));
	/* addresses */
	ck_assert(ip_batch("addr add 2001:db8::1/64 dev e1 nodad\naddr del 10.9.1.1/24 dev e1\nlink set e1 up\n"));
	UNTIL(is_up("e1") && address("10.9.1.1") == NULL && address("2001:db8::1") != NULL);
	/* names, and all of it */
	ck_assert(ip_batch("link set e1 down\nlink set e1 name wan\n"));
	UNTIL(iface("e1") == NULL && iface("wan") != NULL);
	ck_assert(ip_batch("link del wan\n"));
	UNTIL(iface("wan") == NULL && iface("p1") == NULL);
	ck_assert_ptr_null(address("2001:db8::1"));
	ck_assert_uint_eq(nw.overruns, 0);
	stop();
}

/* More happens than the socket holds while nobody looks. */
START_TEST(rereads_after_an_overrun)
{
	static char text[400000];
	char *p = text;

	if (!start("link add e1 type veth peer name p1\nlink set e1 up\n"))
		return;
	for (unsigned i = 0; i < 4000; i++)
		p += sprintf(p, "addr add 10.%u.%u.1/24 dev e1\n", 1 + i / 200, i % 200);
	p += sprintf(p, "addr del 10.1.0.1/24 dev e1\n");
	ck_assert(ip_batch(text));
	UNTIL(address("10.20.199.1") != NULL && address("10.1.0.1") == NULL);
	ck_assert_uint_ge(nw.overruns, 1);
	ck_assert_uint_ge(nw.table.addr_cnt, 3999);
	ck_assert(netwatch_take_change(&nw));
	/* and goes on */
	ck_assert(ip_batch("addr add 10.99.0.1/24 dev e1\n"));
	UNTIL(address("10.99.0.1") != NULL);
	stop();
}
