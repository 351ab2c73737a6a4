/* The commands of the control socket; see commands.h. In the order of smcrctl's help. */
#include "control/commands.h"

#include <string.h>

const struct control_command_row control_commands[] = {
	[CONTROL_STATUS] = { .name = "status", .args = "", .summary = "version, connections, memory, services" },
	[CONTROL_CONNECTIONS] = { .name = "connections",
	    .args = "",
	    .summary = "every proxied connection: SMC-R or TCP, and why",
	    .takes = CONTROL_F_SERVICE | CONTROL_F_MODE | CONTROL_F_GROUP },
	[CONTROL_GROUPS] = { .name = "groups", .args = "", .summary = "link groups" },
	[CONTROL_LINKS] = { .name = "links", .args = "", .summary = "links of the groups", .takes = CONTROL_F_GROUP },
	[CONTROL_RMBS] = { .name = "rmbs", .args = "", .summary = "remote memory buffers", .takes = CONTROL_F_GROUP },
	[CONTROL_DEVICES] = { .name = "devices", .args = "", .summary = "RDMA devices" },
	[CONTROL_STATS] = { .name = "stats",
	    .args = "",
	    .summary = "all counters, most frequent reasons against SMC-R" },
	[CONTROL_CHECK] = { .name = "check",
	    .args = "HOST:PORT",
	    .summary = "is SMC-R possible to that peer, and if not, why",
	    .takes = CONTROL_F_PEER | CONTROL_F_TIMEOUT_MS,
	    .needs = CONTROL_F_PEER,
	    .named = CONTROL_F_PEER },
	[CONTROL_TRACE] = { .name = "trace",
	    .args = "",
	    .summary = "CLC, LLC and CDC messages as they come and go",
	    .takes = CONTROL_F_GROUP | CONTROL_F_TOKEN | CONTROL_F_KINDS,
	    .once = true },
	[CONTROL_REBALANCE] = { .name = "rebalance",
	    .args = "[GROUP]",
	    .summary = "spread connections evenly over the links",
	    .takes = CONTROL_F_GROUP,
	    .named = CONTROL_F_GROUP,
	    .once = true },
	[CONTROL_LINK_DELETE] = { .name = "link-delete",
	    .args = "GROUP LINK",
	    .summary = "take a link out of its group",
	    .takes = CONTROL_F_GROUP | CONTROL_F_LINK,
	    .needs = CONTROL_F_GROUP | CONTROL_F_LINK,
	    .named = CONTROL_F_GROUP | CONTROL_F_LINK,
	    .once = true },
	[CONTROL_RELOAD] = { .name = "reload", .args = "", .summary = "read the configuration again", .once = true },
	[CONTROL_DRAIN] = { .name = "drain",
	    .args = "",
	    .summary = "take no new connections, end when the last one has" },
};

int
control_command_find(const char *name)
{
	for (int i = 0; i < CONTROL_COMMAND_CNT; i++)
		if (strcmp(control_commands[i].name, name) == 0)
			return i;
	return -1;
}
