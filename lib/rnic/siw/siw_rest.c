/*
 * Soft iWARP: what a reset left unread. Nothing of it may be placed any more:
 * the peer may have moved on to another link, and written newer bytes there.
 * But a Terminate among it says why the peer reset the connection. See siw_int.h.
 */
#include <string.h>
#include <sys/socket.h>

#include "rnic/siw/siw_int.h"
#include "wire/rdmap.h"

#define READS_MAX 32 /* what a socket holds is bounded; this is for one whose peer goes on sending */

/* Its words when it is a Terminate, or NULL. */
static const char *
terminate_str(struct span ulpdu)
{
	struct ddp_hdr h;
	struct rdmap_term t;
	int n = ddp_decode(ulpdu, &h);

	if (n <= 0 || h.tagged || h.qn != RDMAP_QN_TERM || rdmap_ctrl_op(h.ulp_ctrl) != RDMAP_TERMINATE)
		return NULL;
	if (rdmap_term_decode((struct span){ .ptr = ulpdu.ptr + n, .len = ulpdu.len - (size_t)n }, &t) < 0)
		return NULL;
	return rdmap_term_str(t.layer, t.etype, t.code);
}

/* Looks through the buffer; *broken: where FPDUs begin is not known any more. */
static const char *
look_through(struct siw_qp *qp, bool *broken)
{
	struct span ulpdu;
	size_t need;

	for (;;) {
		ssize_t used = fpdu_rx_next(&qp->fpdu, qp->rx_buf + qp->rx_off, qp->rx_len - qp->rx_off, &ulpdu, &need);
		const char *why;

		*broken = used < 0;
		if (used <= 0)
			return NULL;
		why = terminate_str(ulpdu);
		if (why != NULL)
			return why;
		qp->rx_off += (size_t)used;
	}
}

/* False: there is no more. */
static bool
read_more(struct siw_qp *qp)
{
	ssize_t n;

	memmove(qp->rx_buf, qp->rx_buf + qp->rx_off, qp->rx_len - qp->rx_off);
	qp->rx_len -= qp->rx_off;
	qp->rx_off = 0;
	n = recv(qp->fd, qp->rx_buf + qp->rx_len, SIW_RX_BUF - qp->rx_len, MSG_DONTWAIT);
	if (n <= 0)
		return false;
	qp->rx_len += (size_t)n;
	return true;
}

const char *
siw_rest_terminate(struct siw_qp *qp)
{
	/* Of a Write that was read straight into place: its rest comes first. */
	size_t skip = qp->rx_place_len + qp->rx_place_tail;

	if (qp->state != SIW_RTS && qp->state != SIW_RTR_WAIT)
		return NULL;
	for (unsigned i = 0; i < READS_MAX; i++) {
		size_t have = qp->rx_len - qp->rx_off, n = skip < have ? skip : have;
		bool broken = false;
		const char *why;

		qp->rx_off += n;
		skip -= n;
		why = skip == 0 ? look_through(qp, &broken) : NULL;
		if (why != NULL || broken || !read_more(qp))
			return why;
	}
	return NULL;
}
