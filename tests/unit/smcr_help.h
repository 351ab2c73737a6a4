/* What tests need of the engine, and the daemon does not. */
#pragma once

#include <string.h>

#include "smcr/state/engine.h"

/* The settings of an engine by default, as the daemon's configuration has them. */
static inline void
smcr_config_init(struct smcr_config *cfg)
{
	*cfg = (struct smcr_config){
		.conns_max = 65536,
		.conns_per_group = SMCR_CONNS_PER_GROUP,
		.quarantine_max = 64,
		.groups_per_addr = 16,
		.rmb_bytes_max = 4ull << 30,
		.rmb_elems = 255,
		.links_max = 2,
		.features = CLC_FEATURES,
		.sndbuf_bytes_max = 1ull << 30,
		.group_bytes_max = 1ull << 30,
		.sq_depth = 1024,
		.rq_depth = 1024,
		.clc_ms = 6000,
		.llc_ms = 2000,
		.confirm_link_ms = 4000,
		.add_link_ms = 2000,
		.add_link_retry_ms = 10000,
		.add_link_retry_max_ms = 600000,
		.keepalive_ms = 30000,
		.keepalive_answer_ms = 2000,
		.last_link_ms = 900000,
		.group_idle_ms = 600000,
		.rmb_idle_ms = 60000,
		.close_ms = 60000,
		.abort_ms = 10000,
		.fin_grace_ms = 2000,
		.holdoff_ms = 1000,
		.holdoff_max_ms = 60000,
		.group_first = 1,
		.group_step = 1,
	};
	memset(cfg->host, ' ', sizeof(cfg->host));
}

/* Iteration over connections, as smcr_group_next. */
static inline bool
smcr_conn_next(const struct smcr *eng, uint32_t *pos, struct smcr_conn_info *out)
{
	const struct smcr_conn *conn = idtable_next(&eng->conns, pos);

	if (conn == NULL)
		return false;
	smcr_conn_info(conn, out);
	return true;
}
