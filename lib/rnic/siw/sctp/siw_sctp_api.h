/* The sockets API of SCTP (RFC 6458) as both stacks use it: options, what is received, paths. Their structs and
 * names come from headers that exclude each other: to be included behind the stack's own. */
#pragma once

#include <sys/types.h>

#include "rnic/siw/sctp/siw_sctp.h"

#define SIW_SCTP_CONNECT_TRIES 4
#define SIW_SCTP_RTO_MIN_MS 200
#define SIW_SCTP_RTO_MAX_MS 1000

typedef bool siw_sctp_set(const void *socket, int option, const void *value, size_t len);

/* What sockets of both stacks have. Those that are accepted inherit it. False: see errno. */
static inline bool
siw_sctp_configure(const void *so, siw_sctp_set *set, const struct siw_config *cfg)
{
	static const uint16_t events[] = { SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION, SCTP_SHUTDOWN_EVENT };
	const int on = 1;
	const struct sctp_setadaptation ind = { sctp_ddp_values[cfg->sctp_profile].adaptation };
	const struct sctp_initmsg init = { .sinit_num_ostreams = 1,
		.sinit_max_instreams = 1,
		.sinit_max_attempts = SIW_SCTP_CONNECT_TRIES,
		.sinit_max_init_timeo = SIW_SCTP_RTO_MAX_MS };
	const struct sctp_rtoinfo rto = {
		.srto_initial = SIW_SCTP_RTO_MIN_MS, .srto_min = SIW_SCTP_RTO_MIN_MS, .srto_max = SIW_SCTP_RTO_MAX_MS
	};
	/* Silence is for the device's user to judge (RNIC_EV_SILENT). */
	const struct sctp_assocparams patient = { .sasoc_asocmaxrxt = UINT16_MAX };
	bool ok = set(so, SCTP_NODELAY, &on, sizeof(on)) && set(so, SCTP_DISABLE_FRAGMENTS, &on, sizeof(on)) &&
	    set(so, SCTP_RECVRCVINFO, &on, sizeof(on)) && set(so, SCTP_ADAPTATION_LAYER, &ind, sizeof(ind)) &&
	    set(so, SCTP_INITMSG, &init, sizeof(init)) && set(so, SCTP_RTOINFO, &rto, sizeof(rto)) &&
	    set(so, SCTP_ASSOCINFO, &patient, sizeof(patient));

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		const struct sctp_event e = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = events[i], .se_on = 1 };

		ok = ok && set(so, SCTP_EVENT, &e, sizeof(e));
	}
	return ok;
}

/* A notification, as it was received: a->comm_up and is_up follow. NOTHING: passed over. */
static inline enum siw_assoc_in
siw_sctp_notified(struct siw_assoc *a, const void *bytes, size_t len, struct siw_assoc_msg *out)
{
	const union sctp_notification *n = bytes;

	if (len < sizeof(n->sn_header))
		return SIW_ASSOC_NOTHING;
	switch (n->sn_header.sn_type) {
	case SCTP_ADAPTATION_INDICATION:
		if (n->sn_adaptation_event.sai_adaptation_ind != siw_sctp_values(a->dev)->adaptation)
			return siw_assoc_lost(out, "the peer does another thing than DDP on SCTP");
		a->is_up = true;
		return SIW_ASSOC_UP;
	case SCTP_SHUTDOWN_EVENT:
		return SIW_ASSOC_CLOSED;
	case SCTP_ASSOC_CHANGE:
		break;
	default:
		return SIW_ASSOC_NOTHING;
	}
	switch (n->sn_assoc_change.sac_state) {
	case SCTP_COMM_UP:
		a->comm_up = true;
		return SIW_ASSOC_NOTHING;
	case SCTP_SHUTDOWN_COMP:
		return SIW_ASSOC_CLOSED;
	case SCTP_CANT_STR_ASSOC:
		return siw_assoc_silent(out, SIW_LOST_SILENT);
	case SCTP_RESTART:
		return siw_assoc_lost(out, "the peer restarted the association");
	default:
		return siw_assoc_silent(out, SIW_LOST_RESET);
	}
}

/* What came with the bytes of one call of receive(). */
struct siw_received {
	int flags;
	struct sctp_rcvinfo info;
	bool has_info;
	const char *lost; /* of a negative result: why the association is lost; NULL: there is nothing now */
};

/* As struct siw_sctp_stack.take: receive() puts a notification or a message into dev->sctp->message, and came_up() is
 * called when the stack has the association up. */
static inline enum siw_assoc_in
siw_sctp_take(struct siw_assoc *a, ssize_t (*receive)(struct siw_assoc *, struct siw_received *),
    void (*came_up)(struct siw_assoc *), struct siw_assoc_msg *out)
{
	struct siw_sctp_dev *d = a->dev->sctp;

	/* Behind those that Writes stay in. */
	if (list_empty(&d->unplaced) || d->message > d->received + sizeof(d->received) - SIW_SCTP_MESSAGE_ROOM) {
		rnic_unit_place_all(&d->unplaced);
		d->message = d->received;
	}
	const uint8_t *bytes = d->message;
	for (;;) {
		struct siw_received r = { 0 };
		ssize_t n = receive(a, &r);
		bool was_up = a->comm_up;

		if (n < 0 && r.lost != NULL)
			return siw_assoc_silent(out, r.lost);
		if (n < 0)
			/* The indication comes with the news that the association is up, or not at all. */
			return a->comm_up && !a->is_up ? siw_assoc_lost(out, SIW_LOST_NO_DDP) : SIW_ASSOC_NOTHING;
		if (n == 0)
			return SIW_ASSOC_CLOSED;
		if (r.flags & MSG_NOTIFICATION) {
			enum siw_assoc_in in = siw_sctp_notified(a, bytes, (size_t)n, out);

			if (a->comm_up && !was_up)
				came_up(a);
			if (in != SIW_ASSOC_NOTHING)
				return in;
			continue;
		}
		if (!a->is_up)
			return siw_assoc_lost(out, SIW_LOST_NO_DDP);
		if (!(r.flags & MSG_EOR))
			return siw_assoc_lost(out, SIW_LOST_FRAGMENTS);
		if (!r.has_info)
			return siw_assoc_silent(out, SIW_LOST_RESET);
		d->message += (n + 63) / 64 * 64;
		*out = (struct siw_assoc_msg){
			.ppid = ntohl(r.info.rcv_ppid),
			.stream = r.info.rcv_sid,
			.bytes = { .ptr = bytes, .len = (size_t)n },
		};
		return SIW_ASSOC_MESSAGE;
	}
}

/* Where it leads to, and whether it is the primary one, the stack adds. Round trips are in whole milliseconds. */
static inline struct rnic_path
siw_sctp_path(const struct sctp_paddrinfo *p)
{
	return (struct rnic_path){
		.state = p->spinfo_state == SCTP_ACTIVE   ? RNIC_PATH_ACTIVE
		    : p->spinfo_state == SCTP_INACTIVE    ? RNIC_PATH_INACTIVE
		    : p->spinfo_state == SCTP_UNCONFIRMED ? RNIC_PATH_UNCONFIRMED
		                                          : RNIC_PATH_UNKNOWN,
		.rtt_us = p->spinfo_srtt * 1000,
		.rto_us = p->spinfo_rto * 1000,
		.mtu = p->spinfo_mtu,
		.cwnd = p->spinfo_cwnd,
	};
}
