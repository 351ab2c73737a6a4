/* CLC connection during the rendezvous; see clc_stream.h. */
#include "daemon/leg/clc_stream.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/device/devices.h"

struct smcr_identity
clc_stream_identity(const struct sockaddr_storage *peer)
{
	struct smcr_identity id = { .scope = 0 };

	addr_to_v6(peer, id.addr);
	if (peer->ss_family == AF_INET6)
		id.scope = ((const struct sockaddr_in6 *)peer)->sin6_scope_id;
	return id;
}

void
clc_stream_name(const struct sockaddr_storage *peer, struct smcr_open *o)
{
	char name[ADDR_STR_MAX];

	o->remote = clc_stream_identity(peer);
	(void)snprintf(o->peer_key, sizeof(o->peer_key), "%s", addr_format_port(peer, name, sizeof(name)));
}

void
clc_stream_describe(
    const struct leg *mid, const struct devices *devices, const struct sockaddr_storage *peer, struct smcr_open *o)
{
	const struct sockaddr_storage local = net_local_addr(mid->io.fd);

	devices_describe(devices, &local, o);
	o->rtt_ns = net_rtt_ns(mid->io.fd);
	clc_stream_name(peer, o);
}

void
clc_out_take(struct clc_out *out, struct smcr_conn *conn)
{
	out->len = (uint16_t)(out->len + smcr_clc_output(conn, out->buf + out->len, sizeof(out->buf) - out->len));
}

int
clc_out_flush(struct clc_out *out, struct leg *mid)
{
	struct iovec iov = { out->buf, out->len };

	if (out->len == 0)
		return 0;
	ssize_t n = leg_write(mid, &iov, 1, false);
	if (n < 0)
		return (int)n;
	out->len = (uint16_t)(out->len - n);
	memmove(out->buf, out->buf + n, out->len);
	return 0;
}

ssize_t
clc_read(struct leg *mid, struct smcr_conn *conn, struct clc_in *in)
{
	size_t want = smcr_clc_want(conn);

	if (want == 0)
		return 0;
	if (in->off == in->len) {
		/* Not beyond the message when an urgent byte is due, which is data and must be read as urgent. */
		bool ahead = (mid->flags & LEG_URGENT) == 0;
		struct iovec iov = { in->buf, ahead ? sizeof(in->buf) : min_size(want, sizeof(in->buf)) };
		bool urgent;
		ssize_t n = leg_read(mid, &iov, 1, &urgent);

		if (n <= 0)
			return n;
		in->off = 0;
		in->len = (uint16_t)n;
	}
	want = min_size(want, (size_t)(in->len - in->off));
	smcr_clc_input(conn, in->buf + in->off, want);
	if (clc_tlvs_len(&in->tlvs) == 0) /* a Proposal may lead to a fallback, and end the rendezvous */
		in->tlvs = smcr_proposed_tlvs(conn);
	in->off = (uint16_t)(in->off + want);
	return (ssize_t)want;
}

void
clc_pump(struct leg *mid, struct smcr_conn *conn, struct clc_in *in, struct clc_out *out)
{
	ssize_t n;

	do {
		clc_out_take(out, conn);
		n = clc_out_flush(out, mid) == 0 ? clc_read(mid, conn, in) : -1;
	} while (n > 0);
	/* Messages have a length: a FIN behind one needs no close_notify, which a peer with data on SMC-R omits. */
	if (n < 0)
		smcr_tcp_event(conn, (mid->flags & LEG_CUT) != 0 ? SMCR_TCP_FIN : SMCR_TCP_RST);
	else if (smcr_clc_want(conn) > 0 && (mid->flags & LEG_EOF) != 0)
		smcr_tcp_event(conn, SMCR_TCP_FIN);
}
