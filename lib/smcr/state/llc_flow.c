/* Which step of an LLC exchange may follow which; see llc_flow.h. */
#include "smcr/state/llc_flow.h"

#include <assert.h>

#include "smcr/state/lgr.h"
#include "smcr/state/log.h"

#define BIT(step) (1u << LLC_##step)

/* Each exchange may also end (LLC_IDLE). A step that follows itself waits for the next one of several messages. */
static const struct {
	const char *name;
	unsigned next;
} steps[LLC_STEP_CNT] = {
	[LLC_IDLE] = { "idle",
	    BIT(WAIT_CONFIRM_LINK) | BIT(WAIT_CONFIRM_LINK_RSP) | BIT(WAIT_ADD_LINK_RSP) | BIT(CONNECT_NEW) |
	        BIT(DRAIN_LINK) | BIT(WAIT_DELETE_LINK_RSP) | BIT(WAIT_DELETE_LINK_SENT) | BIT(WAIT_DELETE_LINK) |
	        BIT(WAIT_CONFIRM_RKEY_RSP) | BIT(WAIT_DELETE_RKEY_RSP) },
	[LLC_WAIT_CONFIRM_LINK] = { "waits for CONFIRM LINK", BIT(WAIT_ADD_LINK) },
	[LLC_WAIT_CONFIRM_LINK_RSP] = { "waits for CONFIRM LINK response", BIT(WAIT_ADD_LINK_RSP) },
	[LLC_WAIT_ADD_LINK] = { "waits for ADD LINK", BIT(CONNECT_NEW) },
	[LLC_WAIT_PEER_DECLINE] = { "waits for a Decline", 0 },
	[LLC_WAIT_ADD_LINK_RSP] = { "waits for ADD LINK response", BIT(WAIT_ADD_CONT_RSP) | BIT(WAIT_PEER_DECLINE) },
	[LLC_WAIT_ADD_CONT_RSP] = { "waits for ADD LINK CONTINUATION response",
	    BIT(WAIT_ADD_CONT_RSP) | BIT(WAIT_NEW_CONNECTED) | BIT(WAIT_NEW_CONFIRM_RSP) | BIT(WAIT_PEER_DECLINE) },
	[LLC_WAIT_NEW_CONNECTED] = { "waits for the new queue pair",
	    BIT(WAIT_NEW_CONFIRM_RSP) | BIT(WAIT_PEER_DECLINE) },
	[LLC_WAIT_NEW_CONFIRM_RSP] = { "waits for CONFIRM LINK response of the new link", BIT(WAIT_PEER_DECLINE) },
	[LLC_CONNECT_NEW] = { "connects the new queue pair", BIT(WAIT_ADD_CONT) | BIT(WAIT_PEER_DECLINE) },
	[LLC_WAIT_ADD_CONT] = { "waits for ADD LINK CONTINUATION",
	    BIT(WAIT_ADD_CONT) | BIT(WAIT_NEW_CONFIRM) | BIT(WAIT_PEER_DECLINE) },
	[LLC_WAIT_NEW_CONFIRM] = { "waits for CONFIRM LINK of the new link", BIT(WAIT_PEER_DECLINE) },
	[LLC_DRAIN_LINK] = { "drains a link", BIT(WAIT_DELETE_LINK_RSP) | BIT(CONNECT_NEW) },
	[LLC_WAIT_DELETE_LINK_RSP] = { "waits for DELETE LINK response", 0 },
	[LLC_WAIT_DELETE_LINK_SENT] = { "sends DELETE LINK for all", 0 },
	[LLC_WAIT_DELETE_LINK] = { "waits for DELETE LINK for all", 0 },
	[LLC_WAIT_CONFIRM_RKEY_RSP] = { "waits for CONFIRM RKEY response", BIT(WAIT_CONFIRM_RKEY_RSP) },
	[LLC_WAIT_DELETE_RKEY_RSP] = { "waits for DELETE RKEY response", 0 },
};

void
llc_flow_set_step(struct llc_flow *f, enum llc_step next)
{
	assert(next == LLC_IDLE || (steps[f->step].next & (1u << next)) != 0);
	if (f->step != next)
		engine_log_state(f->lgr, f->link, f == &f->lgr->flow[LLC_FLOW_LINK] ? "LLC links" : "LLC RKEYs",
		    steps[f->step].name, steps[next].name, NULL);
	f->step = next;
}
