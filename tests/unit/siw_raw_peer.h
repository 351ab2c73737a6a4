/* A peer of the soft iWARP device made by hand, for what no device of ours does: it connects to b, or listens for a. */
#pragma once

#include <fcntl.h>
#include <netinet/tcp.h>

#include "iwarp/fpdu.h"
#include "iwarp/txq.h"
#include "rnic/mpa_pdata.h"
#include "siw_ends.h"
#include "wire/rdmap.h"

static struct raw {
	int fd;
	uint8_t in[300000];
	size_t len;
	struct fpdu_rx rx;
	struct txq txq;
	bool eof;
} raw;

static inline void
raw_init(int fd)
{
	const int on = 1;

	raw.fd = fd;
	raw.len = 0;
	raw.eof = false;
	raw.rx = (struct fpdu_rx){ .crc = true };
	ck_assert_int_eq(txq_init(&raw.txq, 200000), 0);
	txq_start(&raw.txq, true, false);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
}

static inline void
raw_close(void)
{
	close(raw.fd);
	txq_fini(&raw.txq);
}

static inline void
raw_open(const struct end *to, int mss)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(rnic_query(to->dev).mpa_port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (mss > 0)
		ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	raw_init(fd);
}

static inline void
raw_send(const void *bytes, size_t len)
{
	ck_assert_int_eq(send(raw.fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static inline void
raw_read(void)
{
	ssize_t n = recv(raw.fd, raw.in + raw.len, sizeof(raw.in) - raw.len, 0);

	if (n > 0)
		raw.len += (size_t)n;
	else if (n == 0 || errno != EAGAIN)
		raw.eof = true;
}

static inline void
raw_take(size_t n)
{
	memmove(raw.in, raw.in + n, raw.len - n);
	raw.len -= n;
}

/* A Request with private data for b's QP, as a device sends it but for what the test changes. */
static inline struct mpa_pdata
raw_pdata(void)
{
	return (struct mpa_pdata){
		.recv_depth = 8,
		.qpn = b.qp->qpn,
		.psn = b.qp->psn,
		.token = TOKEN,
		.from_qpn = 77,
		.ulpdu_max = 16384,
	};
}

static inline struct mpa_frame
raw_frame(enum mpa_kind kind)
{
	return (struct mpa_frame){
		.kind = kind,
		.rev = 2,
		.flags = MPA_ENHANCED | MPA_CRC,
		.enh = { .model = ENHANCED_P2P | RTR_ANY, .ird = 4, .ord = 4 },
	};
}

static inline void
raw_send_frame(struct mpa_frame f, const struct mpa_pdata *d)
{
	uint8_t pd[MPA_PDATA_LEN], out[MPA_FRAME_MAX];

	if (d != NULL) {
		mpa_pdata_encode(d, pd);
		f.pd = (struct span){ pd, sizeof(pd) };
	}
	int len = mpa_frame_encode(&f, out, sizeof(out));
	ck_assert_int_gt(len, 0);
	raw_send(out, (size_t)len);
}

static inline bool
raw_has_frame(enum mpa_kind kind, struct mpa_frame *f)
{
	raw_read();
	return mpa_frame_decode((struct span){ raw.in, raw.len }, kind, f) > 0;
}

/* Awaits the Reply; its private data is in *d when it is one of ours. */
static inline struct mpa_frame
raw_reply(struct mpa_pdata *d)
{
	struct mpa_frame f;

	UNTIL(raw_has_frame(MPA_REPLY, &f));
	if (mpa_pdata_decode(f.pd, d) < 0)
		memset(d, 0xff, sizeof(*d));
	raw_take(MPA_HDR_LEN + f.pd.len + (f.flags & MPA_ENHANCED ? ENHANCED_LEN : 0));
	return f;
}

static inline void
raw_fpdu(const struct ddp_hdr *h, const void *bytes, size_t len)
{
	struct iovec iov[8];
	struct txq_payload p = { .cnt = 1, .len = len, .v = { { (void *)(uintptr_t)bytes, len } } };

	txq_put(&raw.txq, h, &p);
	ck_assert_uint_eq(txq_gather(&raw.txq, iov, 8), 1);
	raw_send(iov[0].iov_base, iov[0].iov_len);
	txq_sent(&raw.txq, iov[0].iov_len);
}

static const struct ddp_hdr rtr_write = { .tagged = true, .last = true, .ulp_ctrl = 0x40, .stag = 1 };

static struct span raw_ulpdu;

static inline bool
raw_has_fpdu(void)
{
	size_t need;

	raw_read();
	return fpdu_rx_next(&raw.rx, raw.in, raw.len, &raw_ulpdu, &need) > 0;
}

/* Awaits an FPDU; its header, and its payload in raw_ulpdu. */
static inline struct ddp_hdr
raw_next(void)
{
	struct ddp_hdr h;

	UNTIL(raw_has_fpdu());
	int n = ddp_decode(raw_ulpdu, &h);
	ck_assert_int_gt(n, 0);
	raw_ulpdu.ptr += n;
	raw_ulpdu.len -= (size_t)n;
	return h;
}

static inline void
raw_drop(void)
{
	raw_take(mpa_fpdu_len((size_t)raw.in[0] << 8 | raw.in[1]));
}

static inline void
expect_terminate(uint8_t layer, uint8_t etype, uint8_t code)
{
	struct ddp_hdr h = raw_next();
	struct rdmap_term t;

	ck_assert_uint_eq(h.ulp_ctrl, 0x47);
	ck_assert_uint_eq(h.qn, 2);
	ck_assert_uint_eq(h.msn, 1);
	ck_assert_int_gt(rdmap_term_decode(raw_ulpdu, &t), 0);
	ck_assert_msg(t.layer == layer && t.etype == etype && t.code == code, "%u/%u/%u", t.layer, t.etype, t.code);
	raw_drop();
	/* a graceful end, so that it arrives */
	UNTIL(raw_read(), raw.eof);
	ck_assert_uint_eq(raw.len, 0);
}

static inline void
open_for_raw(const struct siw_config *c)
{
	struct rnic_remote r = { .qpn = 77 };

	open_both(c, c);
	end_qp(&b, 16, 8, TOKEN);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &r), 0);
}

/* The raw peer connects to b as a well-behaved initiator. */
static inline void
raw_connect(const struct siw_config *c, int mss, uint32_t ulpdu_max)
{
	open_for_raw(c);
	raw_open(&b, mss);
	struct mpa_pdata d = raw_pdata();
	d.ulpdu_max = ulpdu_max;
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	ck_assert_uint_eq(raw_reply(&d).flags, MPA_ENHANCED | MPA_CRC);
	raw_fpdu(&rtr_write, "", 0);
	UNTIL(b.connected == 1);
}

/* -- the raw peer as responder -- */

static int listener;

static inline struct rnic_remote
raw_listen(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(listen(listener, 5), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&sin, &len), 0);
	return (struct rnic_remote){
		.gid = rnic_query(a.dev).gid,
		.qpn = 55,
		.psn = 66,
		.mpa_port = ntohs(sin.sin_port),
	};
}

static inline bool
raw_accepts(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	raw_init(fd);
	return true;
}

/* a sends its Request to the raw peer. */
static inline struct mpa_pdata
raw_serve(const struct siw_config *c)
{
	struct mpa_frame f;
	struct mpa_pdata d;

	open_both(c, c);
	end_qp(&a, 16, 8, TOKEN);
	struct rnic_remote r = raw_listen();
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(raw_accepts());
	UNTIL(raw_has_frame(MPA_REQUEST, &f));
	ck_assert_uint_eq(f.rev, 2);
	ck_assert_uint_eq(f.flags & MPA_ENHANCED, MPA_ENHANCED);
	ck_assert_uint_eq(f.enh.model, ENHANCED_P2P | RTR_ANY);
	ck_assert_uint_eq(f.enh.ird, c->ird);
	ck_assert_uint_eq(f.enh.ord, c->ord);
	ck_assert_int_eq(mpa_pdata_decode(f.pd, &d), 0);
	ck_assert_uint_eq(d.qpn, 55);
	ck_assert_uint_eq(d.psn, 66);
	ck_assert_uint_eq(d.token, TOKEN);
	ck_assert_uint_eq(d.from_qpn, a.qp->qpn);
	raw_take(raw.len);
	return (struct mpa_pdata){ .recv_depth = 8, .qpn = d.from_qpn, .from_qpn = 55, .ulpdu_max = 16384 };
}

static inline void
raw_serve_end(const char *why)
{
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, why);
	ck_assert_uint_eq(a.connected, 0);
	raw_close();
	close(listener);
	close_both();
}
