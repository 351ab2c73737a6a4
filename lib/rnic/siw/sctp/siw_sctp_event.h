/* What a stack tells of an association (RFC 6458 6.1). Both stacks have these structs and names from headers of their own, which do not
 * bear each other: to be included behind that header. */
#pragma once

#include "rnic/siw/sctp/siw_sctp.h"

/* A notification, as it was received: a->comm_up and is_up follow. NOTHING: passed over. */
static inline enum siw_assoc_in
siw_sctp_notified(struct siw_assoc *a, const void *bytes, size_t len, struct siw_assoc_msg *out)
{
	const union sctp_notification *n = bytes;

	if (len < sizeof(n->sn_header))
		return SIW_ASSOC_NOTHING;
	switch (n->sn_header.sn_type) {
	case SCTP_ADAPTATION_INDICATION:
		if (n->sn_adaptation_event.sai_adaptation_ind != sctp_ddp_values[siw_sctp_profile(a->dev)].adaptation)
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
		return siw_assoc_lost(out, "the peer began anew");
	default:
		return siw_assoc_silent(out, SIW_LOST_RESET);
	}
}
