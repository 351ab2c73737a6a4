/* The commands of the control socket; see commands.h. In the order of smcrctl's help. */
#include "control/commands.h"

/* clang-format off */
const struct control_command_row control_commands[] = {
	[CONTROL_STATUS] = { .name = "status", .summary = "version, connections, memory, services",
	    .takes = CONTROL_F_WORKER },
	[CONTROL_SERVICE] = { .name = "service", .summary = "one service: settings, counts, is its far end there",
	    .args = "NAME", .takes = CONTROL_F_SERVICE | CONTROL_F_WORKER, .needs = CONTROL_F_SERVICE,
	    .named = CONTROL_F_SERVICE },
	[CONTROL_CONNECTIONS] = { .name = "connections", .summary = "every proxied connection: SMC-R or TCP, and why",
	    .takes = CONTROL_F_SERVICE | CONTROL_F_MODE | CONTROL_F_GROUP | CONTROL_F_WORKER },
	[CONTROL_GROUPS] = { .name = "groups", .summary = "link groups", .takes = CONTROL_F_WORKER },
	[CONTROL_LINKS] = { .name = "links", .summary = "links of the groups", .takes = CONTROL_F_GROUP | CONTROL_F_WORKER },
	[CONTROL_RMBS] = { .name = "rmbs", .summary = "remote memory buffers", .takes = CONTROL_F_GROUP | CONTROL_F_WORKER },
	[CONTROL_DEVICES] = { .name = "devices", .summary = "RDMA devices", .takes = CONTROL_F_WORKER },
	[CONTROL_STATS] = { .name = "stats", .summary = "all counters, most frequent reasons against SMC-R",
	    .takes = CONTROL_F_WORKER },
	[CONTROL_CHECK] = { .name = "check", .summary = "is SMC-R possible to that peer, and if not, why",
	    .args = "HOST:PORT", .takes = CONTROL_F_PEER | CONTROL_F_TIMEOUT_MS | CONTROL_F_WORKER,
	    .needs = CONTROL_F_PEER, .named = CONTROL_F_PEER },
	[CONTROL_TRACE] = { .name = "trace", .summary = "CLC, LLC and CDC messages as they come and go",
	    .takes = CONTROL_F_GROUP | CONTROL_F_TOKEN | CONTROL_F_KINDS | CONTROL_F_WORKER, .once = true },
	[CONTROL_REBALANCE] = { .name = "rebalance", .summary = "spread connections evenly over the links",
	    .args = "[GROUP]", .takes = CONTROL_F_GROUP | CONTROL_F_WORKER, .named = CONTROL_F_GROUP, .once = true },
	[CONTROL_LINK_DELETE] = { .name = "link-delete", .summary = "take a link out of its group",
	    .args = "GROUP LINK", .takes = CONTROL_F_GROUP | CONTROL_F_LINK,
	    .needs = CONTROL_F_GROUP | CONTROL_F_LINK, .named = CONTROL_F_GROUP | CONTROL_F_LINK, .once = true },
	[CONTROL_RELOAD] = { .name = "reload", .summary = "read the configuration again", .once = true },
	[CONTROL_DRAIN] = { .name = "drain", .summary = "take no new connections, end when the last one has" },
};
/* clang-format on */
