/* Measurement; see measure.h. */
#include "daemon/probe/measure.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "base/span.h"

#define MAGIC 0x736d724d /* "smrM" */
#define VERSION 1
#define PIECE 65536
#define BUDGET (8 * PIECE) /* bytes per turn */

static const uint8_t zeros[PIECE];

static void
encode(struct measure *m)
{
	struct wcur w = wcur_make(m->hdr, sizeof(m->hdr));

	wcur_be(&w, MAGIC, 4);
	wcur_be(&w, VERSION, 4);
	wcur_be(&w, m->out, 8);
	wcur_be(&w, m->back, 8);
}

static bool
is_size(uint64_t bytes)
{
	return bytes >= 1 && bytes <= MEASURE_BYTES_MAX;
}

/* A request, or an answer, which must equal the request. */
static int
decode(struct measure *m)
{
	struct rcur r = rcur_make(m->hdr, sizeof(m->hdr));
	bool known = rcur_be(&r, 4) == MAGIC && rcur_be(&r, 4) == VERSION;
	uint64_t out = rcur_be(&r, 8), back = rcur_be(&r, 8);

	if (!known || !is_size(out) || !is_size(back) || (m->asks && (out != m->out || back != m->back)))
		return -EPROTO;
	m->out = out;
	m->back = back;
	return 0;
}

static bool
is_header(enum measure_phase phase)
{
	return phase == MEASURE_REQUEST || phase == MEASURE_ANSWER;
}

static bool
sends(const struct measure *m)
{
	return m->phase != MEASURE_DONE && m->asks == (m->phase <= MEASURE_OUT);
}

static void
set_phase(struct measure *m, enum measure_phase phase)
{
	m->phase = phase;
	m->left = phase == MEASURE_OUT ? m->out : phase == MEASURE_BACK ? m->back : MEASURE_HDR_LEN;
	if (is_header(phase) && sends(m))
		encode(m);
}

/* The bytes of the phase were sent or received. */
static int
measure_go_on(struct measure *m, int64_t now_ns)
{
	if (is_header(m->phase) && !sends(m) && decode(m) != 0)
		return -EPROTO;
	if (m->phase == MEASURE_ANSWER)
		m->turned_ns = now_ns;
	else if (m->phase == MEASURE_BACK)
		m->done_ns = now_ns;
	set_phase(m, m->phase == MEASURE_BACK && !m->asks ? MEASURE_REQUEST : (enum measure_phase)(m->phase + 1));
	return 0;
}

void
measure_ask(struct measure *m, uint64_t out, uint64_t back, int64_t now_ns)
{
	*m = (struct measure){ .asks = true, .out = out, .back = back, .begun_ns = now_ns };
	set_phase(m, MEASURE_REQUEST);
}

void
measure_serve(struct measure *m)
{
	*m = (struct measure){ .asks = false };
	set_phase(m, MEASURE_REQUEST);
}

size_t
measure_piece(const struct measure *m, const uint8_t **at)
{
	if (!sends(m))
		return 0;
	*at = is_header(m->phase) ? m->hdr + MEASURE_HDR_LEN - m->left : zeros;
	return (size_t)min_u64(m->left, PIECE);
}

int
measure_sent(struct measure *m, size_t n, int64_t now_ns)
{
	m->left -= n;
	return n > 0 && m->left == 0 ? measure_go_on(m, now_ns) : 0;
}

int
measure_received(struct measure *m, const void *buf, size_t len, int64_t now_ns)
{
	struct rcur r = rcur_make(buf, len);

	while (rcur_left(&r) > 0) {
		size_t n = (size_t)min_u64(m->left, rcur_left(&r));

		if (sends(m) || m->phase == MEASURE_DONE)
			return -EPROTO;
		if (is_header(m->phase))
			rcur_bytes(&r, m->hdr + MEASURE_HDR_LEN - m->left, n);
		else
			rcur_skip(&r, n);
		m->left -= n;
		if (m->left == 0 && measure_go_on(m, now_ns) != 0)
			return -EPROTO;
	}
	return 0;
}

/* -- I/O: over the engine's connection, or with NULL over the leg -- */

/* Bytes sent, 0: blocked, or -errno. */
static ssize_t
measure_put(struct measure *m, struct smcr_conn *conn, struct leg *leg, int64_t now_ns)
{
	struct iovec iov[2] = { { 0 } };
	const uint8_t *at = NULL;
	size_t want = measure_piece(m, &at);
	ssize_t n;

	if (conn == NULL) {
		iov[0] = (struct iovec){ (void *)(uintptr_t)at, want };
		n = leg_write(leg, iov, 1, false);
	} else if (smcr_tx_space(conn, iov) == 0) {
		n = 0;
	} else {
		n = (ssize_t)min_size(want, iov[0].iov_len);
		memcpy(iov[0].iov_base, at, (size_t)n);
		smcr_tx_commit(conn, (size_t)n, false);
	}
	int rc = n > 0 ? measure_sent(m, (size_t)n, now_ns) : 0;
	return rc != 0 ? rc : n;
}

static ssize_t
measure_take(struct measure *m, struct smcr_conn *conn, struct leg *leg, int64_t now_ns)
{
	uint8_t buf[PIECE / 2];
	struct iovec iov[2] = { { buf, sizeof(buf) } };
	bool urgent;
	ssize_t n = conn == NULL ? leg_read(leg, iov, 1, &urgent) : (ssize_t)smcr_rx_data(conn, iov, &urgent);

	if (n <= 0)
		return n;
	if (conn != NULL)
		n = (ssize_t)iov[0].iov_len;
	int rc = urgent ? -EPROTO : measure_received(m, iov[0].iov_base, (size_t)n, now_ns);
	if (rc != 0)
		return rc;
	if (conn != NULL)
		smcr_rx_consume(conn, (size_t)n);
	return n;
}

int
measure_pump(struct measure *m, struct smcr_conn *conn, struct leg *leg, int64_t now_ns)
{
	for (ssize_t done = 0; done < BUDGET;) {
		if (m->phase == MEASURE_DONE)
			return 0;
		ssize_t n = (sends(m) ? measure_put : measure_take)(m, conn, leg, now_ns);
		if (n <= 0)
			return (int)n;
		done += n;
	}
	return 1;
}
