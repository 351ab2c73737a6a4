/* Rules of capture: destinations without overlaps, names, and what is refused. check_capture.py loads them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/capture.h"
#include "unit.h"

#define NET(net, min, max) "{\"net\":\"" net "\",\"port_min\":" #min ",\"port_max\":" #max ",\"peer\":\"*:1\"}"

/* What is printed, to be freed; *err likewise. */
static char *
rules_of(const char *name, const char *listen, const char *how, const char *via, const struct capture *c, int *rc,
    char **err)
{
	char json[2000], *out = NULL;
	size_t len, err_len;
	FILE *f = open_memstream(&out, &len), *e = open_memstream(err, &err_len);

	snprintf(json, sizeof(json),
	    "{\"name\":\"%s\",\"listen\":\"%s\",\"to\":\"original\",\"user\":990,\"settings\":[{\"name\":\"capture\",\"value\":"
	    "\"\\\"%s\\\"\"}],\"via\":[%s]}",
	    name, listen, how, via);
	json_t *data = json_loads(json, 0, NULL);
	ck_assert_ptr_nonnull(data);
	*rc = capture_print(f, e, data, c);
	fclose(f);
	fclose(e);
	json_decref(data);
	return out;
}

static const struct {
	const char *via, *elements;
} sets[] = {
	{ NET("192.0.2.0/24", 1, 65535), "192.0.0.8/32 . 9-9,\n\t\t\t192.0.2.0/24 . 1-65535\n" },
	/* The same network again, and ports that touch. */
	{ NET("192.0.2.0/24", 5, 9) "," NET("192.0.2.0/24", 10, 12) "," NET("192.0.2.0/24", 20, 20) "," NET(
	      "192.0.2.0/24", 7, 8),
	    "192.0.0.8/32 . 9-9,\n\t\t\t192.0.2.0/24 . 5-12,\n\t\t\t192.0.2.0/24 . 20-20\n" },
	/* A network within others, which have some or all of its ports. */
	{ NET("192.0.2.0/28", 1, 100) "," NET("192.0.0.0/16", 50, 60) "," NET("192.0.2.0/24", 90, 100),
	    "192.0.0.8/32 . 9-9,\n\t\t\t192.0.2.0/28 . 1-49,\n\t\t\t192.0.2.0/28 . 61-89,\n\t\t\t192.0.0.0/16 . 50-60,\n"
	    "\t\t\t192.0.2.0/24 . 90-100\n" },
	/* One that is all within another, and the proof's destination, too. */
	{ NET("192.0.2.7/32", 65535, 65535) "," NET("0.0.0.0/0", 1, 65535), "0.0.0.0/0 . 1-65535\n" },
};

START_LOOP_TEST(destinations_do_not_overlap, 0, sizeof(sets) / sizeof(sets[0]))
{
	const struct capture c = { .uid = "1000" };
	char want[1000], *err;
	int rc;
	char *out = rules_of("all", "127.0.0.1:7000", "redirect", sets[_i].via, &c, &rc, &err);

	ck_assert_int_eq(rc, 0);
	snprintf(want, sizeof(want), "\t\telements = {\n\t\t\t%s\t\t}\n", sets[_i].elements);
	ck_assert_msg(strstr(out, want) != NULL, "no %s in:\n%s", want, out);
	free(out);
	free(err);
}

/* by: as an option; rule: in the output */
static const struct {
	const char *listen, *how;
	struct capture c;
	const char *rule;
} rules[] = {
	{ "127.0.0.1:7000", "redirect", { .cgroup = NULL },
	    "\t\tmeta skuid 990 return\n\t\tsocket cgroupv2 level 2 \"smcrd.slice/smcrd-programs.slice\" ip daddr . tcp dport "
	    "@via4 dnat ip to 127.0.0.1:7000\n" },
	{ "0.0.0.0:7000", "redirect", { .cgroup = "/a/b/" },
	    "socket cgroupv2 level 2 \"a/b\" ip daddr . tcp dport @via4 redirect to :7000\n" },
	{ "[::1]:7000", "redirect", { .uid = "1000" },
	    "meta skuid 1000 ip6 daddr . tcp dport @via6 dnat ip6 to [::1]:7000\n" },
	{ "0.0.0.0:7000", "tproxy", { .interface = "eth1" },
	    "iifname \"eth1\" ip daddr . tcp dport @via4 tproxy ip to :7000 meta mark set 0x5e accept\n" },
	{ "0.0.0.0:7000", "tproxy", { .uid = "1000" },
	    "iif \"lo\" meta mark 0x5e ip daddr . tcp dport @via4 tproxy ip to :7000 accept\n" },
	/* The cgroup may have gone, a user not. */
	{ "0.0.0.0:7000", "redirect", { .cgroup = "a", .strict = true },
	    "\t\tmeta skuid 990 return\n\t\ttcp flags & (fin | syn | rst | ack) == syn ip daddr . tcp dport @via4 reject with tcp "
	    "reset\n" },
	{ "0.0.0.0:7000", "redirect", { .uid = "1000", .strict = true },
	    "\t\tmeta skuid 1000 tcp flags & (fin | syn | rst | ack) == syn ip daddr . tcp dport @via4 reject with tcp reset\n" },
};

START_LOOP_TEST(rules_are_of_the_listener_and_the_programs, 0, sizeof(rules) / sizeof(rules[0]))
{
	const bool v6 = rules[_i].listen[1] == ':';
	char *err;
	int rc;
	char *out = rules_of("all", rules[_i].listen, rules[_i].how,
	    v6 ? NET("2001:db8::/32", 1, 2) : NET("192.0.2.0/24", 1, 2), &rules[_i].c, &rc, &err);

	ck_assert_int_eq(rc, 0);
	ck_assert_str_eq(err, "");
	ck_assert_msg(strstr(out, rules[_i].rule) != NULL, "no %s in:\n%s", rules[_i].rule, out);
	ck_assert_int_eq(strstr(out, "smcrd_all_strict") != NULL, rules[_i].c.strict);
	free(out);
	free(err);
}

/* A name cannot leave the place where it is printed. */
START_TEST(names_are_those_of_nft)
{
	const struct capture c = { .uid = "1000" };
	char *err;
	int rc;
	char *out = rules_of("a-b.c_d\\n{} \\\"", "127.0.0.1:1", "redirect", NET("192.0.2.0/24", 1, 2), &c, &rc, &err);

	ck_assert_int_eq(rc, 0);
	ck_assert_ptr_nonnull(strstr(out, "\ntable inet smcrd_a-b.c_d_0a_7b_7d_20_22 {\n"));
	free(out);
	free(err);
}

START_TEST(what_cannot_be_captured_is_refused)
{
	static const struct {
		const char *listen, *how, *via;
		struct capture c;
		const char *err;
	} bad[] = {
		{ "127.0.0.1:1", "redirect", "", { .uid = "990" }, "smcrd itself runs as this user" },
		{ "127.0.0.1:1", "redirect", "", { .uid = "-1" }, "no such user: -1" },
		{ "127.0.0.1:1", "redirect", "", { .uid = "4294967295" }, "no such user" },
		{ "127.0.0.1:1", "redirect", "", { .uid = "" }, "no such user" },
		{ "127.0.0.1:1", "redirect", "", { .cgroup = "" }, "--cgroup takes a path" },
		{ "127.0.0.1:1", "redirect", "", { .cgroup = "a\n\" accept" }, "--cgroup takes a path" },
		{ "127.0.0.1:1", "redirect", "", { .interface = "eth1\" accept" }, "--interface takes the name" },
		{ "127.0.0.1:1", "redirect", "", { .interface = "eth1" },
		    "cannot be redirected to a loopback address" },
		{ "unix:/s", "redirect", "", { .uid = "1" }, "no rules lead to unix:/s" },
		{ "127.0.0.1:1", "redirect", NET("2001:db8::/32", 1, 2), { .uid = "1" }, "of the other family" },
		{ "[::1]:1", "redirect", NET("192.0.2.0/24", 1, 2), { .uid = "1" }, "of the other family" },
		{ "127.0.0.1:1", "redirect", NET("192.0.2.0", 1, 2), { .uid = "1" }, "cannot understand" },
		{ "127.0.0.1:1", "redirect", NET("192.0.2.0/24", 0, 2), { .uid = "1" }, "cannot understand" },
		{ "127.0.0.1:1", "redirect", NET("192.0.2.0/24", 3, 2), { .uid = "1" }, "cannot understand" },
		{ "127.0.0.1:1", "redirect", NET("192.0.2.0/24", 1, 65536), { .uid = "1" }, "cannot understand" },
		{ "127.0.0.1:1", "redirect", NET("192.0.2.0/33", 1, 2), { .uid = "1" }, "cannot understand" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *err;
		int rc;
		char *out = rules_of("all", bad[i].listen, bad[i].how, bad[i].via, &bad[i].c, &rc, &err);

		ck_assert_int_eq(rc, -EINVAL);
		ck_assert_str_eq(out, "");
		ck_assert_msg(strstr(err, bad[i].err) != NULL, "no %s in: %s", bad[i].err, err);
		free(out);
		free(err);
	}
}
