/*
 * A host with one soft iWARP device, driven by lines on stdin, so that a
 * script which shares no code with it can play the other end of the wire.
 *
 *	siw_host [KEY=VALUE ...]
 *
 * Settings: addr (127.0.0.1), port_min, port_max, crc (1), markers (0),
 * rtr (any of the letters s w r: Send, Write, Read; swr), rev (2), ird, ord,
 * fpdu_max, connect_ms, answer_ms, confirm_ms, max_qp.
 *
 * Numbers are decimal or 0x hex, memory is hex. NAME is a word of the
 * script's choice. Each command is answered by one line, "ok [KEY=VALUE ...]"
 * or "error TEXT"; commands:
 *
 *	info				ok port= gid= mac= qps= mrs=
 *	stats				ok, every counter of the device
 *	mr NAME LEN [w|r|rw]		ok rkey= addr=; zeroed memory with these remote rights
 *	dereg NAME
 *	set MR OFF HEX			changes memory
 *	get MR OFF LEN			ok HEX
 *	qp NAME SQ RQ TOKEN		ok qpn= psn=
 *	expect QP
 *	connect QP active|passive GID QPN PSN PORT	GID: 32 hex digits, as info gives it, or an IPv4 address
 *	recv QP ID MR OFF LEN
 *	send QP ID MR OFF LEN [FLAGS]	FLAGS: letters s (signaled), e (solicited event), i (inline)
 *	write QP ID MR OFF LEN RKEY ADDR [FLAGS]
 *	confirm QP
 *	room QP				ok wrs= sends= bytes=
 *	disconnect QP [graceful]
 *	destroy QP
 *	pause MS			the host stands still: nothing is read or sent
 *	quit
 *
 * In between, as things happen:
 *
 *	event QP connected|connect_failed|qp_error|room [WHY]
 *	wc QP ID send|write|recv ok|flushed|remote_err|local_err|retry_exc LEN
 *
 * The first line is "ready port=N". End of stdin is quit.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/siw/siw.h"
#include "tests/interop/words.h"
#include "tests/poll_loop.h"
#include "tests/rnic_end.h"
#include "tests/rnic_stats.h"

#define ARGS_MAX 12
#define LINE_MAX_LEN (4 * 1024 * 1024)

static struct poll_loop loop;
static struct rng rng;
static struct rnic_dev *dev;
static struct rnic_pd *pd;
static struct named mrs[NAMES_MAX], qps[NAMES_MAX];
static bool stdin_open = true;

/* -- commands; arguments beyond the last are NULL. Each returns 0, a negative errno, or ANSWERED. -- */

static int
cmd_info(char **arg)
{
	struct rnic_info i = rnic_query(dev);
	char gid[33], mac[13];

	(void)arg;
	for (unsigned k = 0; k < 16; k++)
		snprintf(gid + 2 * k, 3, "%02x", i.gid.b[k]);
	for (unsigned k = 0; k < 6; k++)
		snprintf(mac + 2 * k, 3, "%02x", i.mac[k]);
	say("ok port=%u gid=%s mac=%s qps=%u mrs=%u", i.mpa_port, gid, mac, i.qp_cnt, i.mr_cnt);
	return ANSWERED;
}

static int
cmd_stats(char **arg)
{
	struct rnic_stat s[RNIC_STATS_MAX];
	unsigned n = dev->ops->stats(dev, s);

	(void)arg;
	fputs("ok", stdout);
	for (unsigned i = 0; i < n; i++)
		printf(" %s=%llu", s[i].name, (unsigned long long)s[i].value);
	say("%s", "");
	return ANSWERED;
}

static int
cmd_mr(char **arg)
{
	const char *rights = arg[2] != NULL ? arg[2] : "";
	unsigned access = (strchr(rights, 'w') != NULL ? RNIC_ACCESS_REMOTE_WRITE : 0u) |
	    (strchr(rights, 'r') != NULL ? RNIC_ACCESS_REMOTE_READ : 0u);
	size_t len = num(arg[1]);
	struct rnic_mr *mr;
	void *buf = calloc(1, len ? len : 1);
	int rc = buf == NULL || arg[0] == NULL ? -EINVAL : dev->ops->mr_reg(pd, buf, len, access, &mr);

	if (rc == 0 && !add(mrs, arg[0], mr)) {
		dev->ops->mr_dereg(mr);
		rc = -ENOSPC;
	}
	if (rc < 0) {
		free(buf);
		return rc;
	}
	say("ok rkey=%u addr=%llu", mr->rkey, (unsigned long long)mr->addr);
	return ANSWERED;
}

static void
mr_drop(struct rnic_mr *mr)
{
	void *buf = mr->buf;

	forget(mrs, mr);
	dev->ops->mr_dereg(mr);
	free(buf);
}

static int
cmd_dereg(char **arg)
{
	struct rnic_mr *mr = find(mrs, arg[0]);

	if (mr == NULL)
		return -ENOENT;
	mr_drop(mr);
	return 0;
}

/* Closes units of a region, all but one: `deny MR UNIT-SIZE OPEN`. */
static int
cmd_deny(char **arg)
{
	struct rnic_mr *mr = find(mrs, arg[0]);
	uint64_t open = num(arg[2]);

	if (mr == NULL || open >= 8 * sizeof(mr->deny))
		return -EINVAL;
	mr->deny_unit = (uint32_t)num(arg[1]);
	memset(mr->deny, 0xff, sizeof(mr->deny));
	mr->deny[open / 64] &= ~(1ull << open % 64);
	return 0;
}

/* Room behind an offset. */
static size_t
mr_left(const struct rnic_mr *mr, uint64_t off)
{
	return mr == NULL || off > mr->len ? 0 : mr->len - off;
}

static int
cmd_set(char **arg)
{
	struct rnic_mr *mr = find(mrs, arg[0]);
	uint64_t off = num(arg[1]);

	if (mr == NULL || arg[2] == NULL || mr_left(mr, off) < strlen(arg[2]) / 2)
		return -EINVAL;
	unhex(arg[2], mr->buf + off, mr_left(mr, off));
	return 0;
}

static int
cmd_get(char **arg)
{
	struct rnic_mr *mr = find(mrs, arg[0]);
	uint64_t off = num(arg[1]), len = num(arg[2]);

	if (mr_left(mr, off) < len)
		return -EINVAL;
	fputs("ok ", stdout);
	for (uint64_t i = 0; i < len; i++)
		printf("%02x", mr->buf[off + i]);
	say("%s", "");
	return ANSWERED;
}

static int
cmd_qp(char **arg)
{
	const struct rnic_qp_attr attr = {
		.sq_depth = (uint32_t)num(arg[1]),
		.rq_depth = (uint32_t)num(arg[2]),
		.token = num(arg[3]),
	};
	struct rnic_qp *qp;
	int rc = arg[0] == NULL ? -EINVAL : dev->ops->qp_create(pd, &attr, &qp);

	if (rc == 0 && !add(qps, arg[0], qp)) {
		dev->ops->qp_destroy(qp);
		rc = -ENOSPC;
	}
	if (rc < 0)
		return rc;
	say("ok qpn=%u psn=%u", qp->qpn, qp->psn);
	return ANSWERED;
}

static int
cmd_pause(char **arg)
{
	usleep((useconds_t)num(arg[0]) * 1000);
	return 0;
}

static int
cmd_quit(char **arg)
{
	(void)arg;
	stdin_open = false;
	return 0;
}

/* -- commands on a queue pair, which is the first argument -- */

static int
qp_connect(struct rnic_qp *qp, char **arg)
{
	struct rnic_remote r = {
		.qpn = (uint32_t)num(arg[3]),
		.psn = (uint32_t)num(arg[4]),
		.mtu_code = 5,
		.mpa_port = (uint16_t)num(arg[5]),
	};
	struct in_addr v4;

	if (arg[4] == NULL)
		return -EINVAL;
	if (inet_pton(AF_INET, arg[2], &v4) == 1) {
		r.gid.b[10] = r.gid.b[11] = 0xff;
		memcpy(r.gid.b + 12, &v4, 4);
	} else {
		unhex(arg[2], r.gid.b, 16);
	}
	return dev->ops->qp_connect(qp, arg[1][0] == 'a' ? RNIC_ACTIVE : RNIC_PASSIVE, &r);
}

static int
qp_expect(struct rnic_qp *qp, char **arg)
{
	(void)arg;
	return dev->ops->qp_expect(qp);
}

static int
qp_recv(struct rnic_qp *qp, char **arg)
{
	struct rnic_mr *mr = find(mrs, arg[2]);
	uint64_t off = num(arg[3]);
	struct rnic_recv_wr wr = { .wr_id = num(arg[1]), .mr = mr, .len = (uint32_t)num(arg[4]) };

	if (mr == NULL || off > mr->len)
		return -EINVAL;
	wr.ptr = mr->buf + off;
	return dev->ops->post_recv(qp, &wr, 1);
}

static int
post(struct rnic_qp *qp, char **arg, enum rnic_wr_op op, const char *flags)
{
	struct rnic_mr *mr = find(mrs, arg[2]);
	uint64_t off = num(arg[3]);
	struct rnic_send_wr wr = { .wr_id = num(arg[1]), .op = op, .sge_cnt = 1 };

	if (mr == NULL || mr_left(mr, off) < num(arg[4]))
		return -EINVAL;
	wr.sge[0] = (struct rnic_sge){ .mr = mr, .ptr = mr->buf + off, .len = (uint32_t)num(arg[4]) };
	if (op == RNIC_WR_WRITE) {
		wr.rkey = (uint32_t)num(arg[5]);
		wr.raddr = num(arg[6]);
	}
	if (flags != NULL)
		wr.flags = (strchr(flags, 's') != NULL ? RNIC_SIGNALED : 0u) |
		    (strchr(flags, 'e') != NULL ? RNIC_SOLICITED : 0u) |
		    (strchr(flags, 'i') != NULL ? RNIC_INLINE : 0u);
	return dev->ops->post_send(qp, &wr);
}

static int
qp_send(struct rnic_qp *qp, char **arg)
{
	return post(qp, arg, RNIC_WR_SEND, arg[5]);
}

static int
qp_write(struct rnic_qp *qp, char **arg)
{
	return post(qp, arg, RNIC_WR_WRITE, arg[7]);
}

static int
qp_confirm(struct rnic_qp *qp, char **arg)
{
	(void)arg;
	dev->ops->fence(qp);
	return 0;
}

static int
qp_room(struct rnic_qp *qp, char **arg)
{
	struct rnic_credits r;

	(void)arg;
	dev->ops->credits(qp, &r);
	say("ok wrs=%u sends=%u bytes=%zu", r.wrs, r.sends, r.bytes);
	return ANSWERED;
}

static int
qp_depths(struct rnic_qp *qp, char **arg)
{
	struct rnic_depths depths = dev->ops->peer_depths(qp);

	(void)arg;
	say("ok ird=%d ord=%d", depths.ird, depths.ord);
	return ANSWERED;
}

static int
qp_disconnect(struct rnic_qp *qp, char **arg)
{
	dev->ops->qp_disconnect(qp, arg[1] != NULL && strcmp(arg[1], "graceful") == 0);
	return 0;
}

static int
qp_destroy(struct rnic_qp *qp, char **arg)
{
	(void)arg;
	forget(qps, qp);
	dev->ops->qp_destroy(qp);
	return 0;
}

static const struct command {
	const char *name;
	int (*run)(char **arg);
	int (*run_qp)(struct rnic_qp *, char **arg);
} commands[] = {
	{ "info", cmd_info, NULL },
	{ "stats", cmd_stats, NULL },
	{ "mr", cmd_mr, NULL },
	{ "dereg", cmd_dereg, NULL },
	{ "deny", cmd_deny, NULL },
	{ "set", cmd_set, NULL },
	{ "get", cmd_get, NULL },
	{ "qp", cmd_qp, NULL },
	{ "pause", cmd_pause, NULL },
	{ "quit", cmd_quit, NULL },
	{ "expect", NULL, qp_expect },
	{ "connect", NULL, qp_connect },
	{ "recv", NULL, qp_recv },
	{ "send", NULL, qp_send },
	{ "write", NULL, qp_write },
	{ "confirm", NULL, qp_confirm },
	{ "room", NULL, qp_room },
	{ "depths", NULL, qp_depths },
	{ "disconnect", NULL, qp_disconnect },
	{ "destroy", NULL, qp_destroy },
};

static int
run_command(const struct command *c, char **arg)
{
	if (c->run != NULL)
		return c->run(arg);
	struct rnic_qp *qp = find(qps, arg[0]);
	return qp == NULL ? -ENOENT : c->run_qp(qp, arg);
}

static void
run_line(char *line)
{
	char *arg[ARGS_MAX + 1], *word = split(line, arg, ARGS_MAX);

	if (word == NULL)
		return;
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, word) != 0)
			continue;
		answer(run_command(&commands[i], arg));
		return;
	}
	say("error no such command: %s", word);
}

/* Reads what stdin has and runs the lines that are complete. */
static void
stdin_ready(void *unused, unsigned events)
{
	static char buf[LINE_MAX_LEN + 1];
	static size_t len;
	ssize_t n;
	char *nl;

	(void)unused;
	(void)events;
	while ((n = read(STDIN_FILENO, buf + len, LINE_MAX_LEN - len)) > 0) {
		len += (size_t)n;
		buf[len] = 0;
		while ((nl = strchr(buf, '\n')) != NULL && stdin_open) {
			size_t used = (size_t)(nl + 1 - buf);

			*nl = 0;
			run_line(buf);
			memmove(buf, nl + 1, len - used + 1);
			len -= used;
		}
		if (len == LINE_MAX_LEN)
			stdin_open = false;
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		stdin_open = false;
}

/* -- what happens -- */

static void
report(void)
{
	static const char *const ev_names[] = {
		[RNIC_EV_CONNECTED] = "connected",
		[RNIC_EV_CONNECT_FAILED] = "connect_failed",
		[RNIC_EV_QP_ERROR] = "qp_error",
		[RNIC_EV_SILENT] = "silent",
		[RNIC_EV_CREDITS] = "room",
		[RNIC_EV_PORT_UP] = "port_up",
		[RNIC_EV_PORT_DOWN] = "port_down",
		[RNIC_EV_DEV_GONE] = "dev_gone",
	};
	static const char *const ops[] = {
		[RNIC_WC_SEND] = "send",
		[RNIC_WC_WRITE] = "write",
		[RNIC_WC_RECV] = "recv",
	};
	static const char *const states[] = {
		[RNIC_WC_OK] = "ok",
		[RNIC_WC_FLUSHED] = "flushed",
		[RNIC_WC_REMOTE_ERR] = "remote_err",
		[RNIC_WC_LOCAL_ERR] = "local_err",
		[RNIC_WC_RETRY_EXC] = "retry_exc",
	};
	struct rnic_event ev;
	struct rnic_wc wc[64];
	unsigned n;

	while (dev->ops->poll_event(dev, &ev))
		if (ev.type != RNIC_EV_QP_FREED)
			say("event %s %s%s%s", name_of(qps, ev.qp), ev_names[ev.type], ev.why ? " " : "",
			    ev.why ? ev.why : "");
	while ((n = dev->ops->poll(dev, wc, 64)) > 0)
		for (unsigned i = 0; i < n; i++)
			say("wc %s %llu %s %s %u", name_of(qps, wc[i].qp), (unsigned long long)wc[i].wr_id,
			    ops[wc[i].op], states[wc[i].status], wc[i].len);
}

/* -- settings -- */

static unsigned
rtr_bits(const char *v)
{
	return (strchr(v, 's') != NULL ? RTR_SEND : 0u) | (strchr(v, 'w') != NULL ? RTR_WRITE : 0u) |
	    (strchr(v, 'r') != NULL ? RTR_READ : 0u);
}

static bool
setting(struct siw_config *c, const char *key, const char *v)
{
	uint32_t n = (uint32_t)num(v);

	if (strcmp(key, "addr") == 0)
		return inet_pton(AF_INET, v, &((struct sockaddr_in *)(void *)&c->addr)->sin_addr) == 1;
	else if (strcmp(key, "port_min") == 0)
		c->port_min = (uint16_t)n;
	else if (strcmp(key, "port_max") == 0)
		c->port_max = (uint16_t)n;
	else if (strcmp(key, "crc") == 0)
		c->crc = n != 0;
	else if (strcmp(key, "markers") == 0)
		c->markers = n != 0;
	else if (strcmp(key, "rtr") == 0)
		c->rtr = rtr_bits(v);
	else if (strcmp(key, "transport") == 0)
		c->transport = strcmp(v, "sctp") == 0 ? SIW_SCTP : SIW_TCP;
	else if (strcmp(key, "sctp_stack") == 0)
		c->sctp_stack = strcmp(v, "kernel") == 0 ? SIW_STACK_KERNEL : SIW_STACK_USER;
	else if (strcmp(key, "sctp_udp") == 0)
		c->sctp_udp = (uint16_t)n;
	else if (strcmp(key, "profile") == 0)
		c->sctp_profile = strcmp(v, "draft-00") == 0 ? SCTP_DDP_DRAFT00 : SCTP_DDP_RFC5043;
	else if (strcmp(key, "rev") == 0)
		c->mpa_rev = (uint8_t)n;
	else if (strcmp(key, "ird") == 0)
		c->ird = (uint16_t)n;
	else if (strcmp(key, "ord") == 0)
		c->ord = (uint16_t)n;
	else if (strcmp(key, "fpdu_max") == 0)
		c->fpdu_max = n;
	else if (strcmp(key, "connect_ms") == 0)
		c->connect_ms = n;
	else if (strcmp(key, "answer_ms") == 0)
		c->answer_ms = n;
	else if (strcmp(key, "confirm_ms") == 0)
		c->fence_ms = n;
	else if (strcmp(key, "max_qp") == 0)
		c->max_qp = n;
	else
		return false;
	return true;
}

static int
configure(struct siw_config *c, int argc, char **argv)
{
	siw_config_init(c);
	(void)addr_parse("127.0.0.1", &c->addr);
	for (int i = 1; i < argc; i++) {
		char *v = strchr(argv[i], '=');

		if (v != NULL)
			*v++ = 0;
		if (v == NULL || !setting(c, argv[i], v)) {
			fprintf(stderr, "siw_host: bad setting: %s\n", argv[i]);
			return -1;
		}
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct siw_config c;
	const char *err;

	if (configure(&c, argc, argv) < 0)
		return 2;
	rng_init_kernel(&rng);
	poll_loop_init(&loop);
	struct rnic_loop l = poll_loop_rnic(&loop);
	int rc = siw_open(&c, &l, &rng, &dev, &err);
	if (rc < 0) {
		fprintf(stderr, "siw_host: %s: %s\n", err, strerror(-rc));
		return 1;
	}
	if (dev->ops->pd_alloc(dev, &pd) < 0)
		return 1;
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	rc = poll_loop_watch(&loop, STDIN_FILENO, stdin_ready, NULL);
	if (rc < 0) {
		fprintf(stderr, "siw_host: stdin: %s\n", strerror(-rc));
		return 1;
	}
	say("ready port=%u", rnic_query(dev).mpa_port);
	while (stdin_open) {
		poll_loop_turn(&loop, &dev, 1, 1000);
		report();
	}
	for (unsigned i = 0; i < NAMES_MAX; i++)
		if (qps[i].obj != NULL)
			dev->ops->qp_destroy(qps[i].obj);
	for (unsigned i = 0; i < NAMES_MAX; i++)
		if (mrs[i].obj != NULL)
			mr_drop(mrs[i].obj);
	dev->ops->pd_free(pd);
	rnic_end(dev);
	poll_loop_fini(&loop);
	return 0;
}
