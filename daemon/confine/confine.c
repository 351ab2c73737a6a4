/* Puts the parts of the confinement together; see confine.h. */
#include "daemon/confine/confine.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "daemon/confine/confine_parts.h"

/* Landlock and seccomp need no_new_privs or a capability, so the order matters. */
static void
rights(const struct config *cfg, enum confine_do what, bool keep_bpf, struct confine_state *out)
{
	struct confine_part_state *privileges = &out->part[CONFINE_PRIVILEGES];

	*out = (struct confine_state){ .mode = cfg->confine.mode };
	if (cfg->confine.mode == CONFIG_CONFINE_OFF) {
		for (unsigned i = 0; i < CONFINE_PART_CNT; i++)
			confine_part_set(&out->part[i], false, "confine.mode is \"off\"");
		return;
	}
	if (what == CONFINE_APPLY && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		confine_part_set(privileges, false, "the kernel refuses: %s", strerror(errno));
	else
		confine_part_set(privileges, true, "no program can be executed with more rights");
	confine_capabilities(cfg, what, keep_bpf, &out->part[CONFINE_CAPABILITIES]);
	confine_files(cfg, what, &out->part[CONFINE_FILES]);
}

/* Of the parts up to `last`. */
static int
verdict(const struct confine_state *state, enum confine_part last)
{
	for (unsigned i = 0; i <= last; i++)
		if (state->mode == CONFIG_CONFINE_REQUIRE && !state->part[i].on)
			return CONFINE_REFUSED;
	return 0;
}

void
confine_preview(const struct config *cfg, bool keep_bpf, struct confine_state *out)
{
	rights(cfg, CONFINE_LOOK, keep_bpf, out);
	if (out->mode != CONFIG_CONFINE_OFF)
		confine_system_calls(CONFINE_LOOK, &out->part[CONFINE_SYSTEM_CALLS]);
}

int
confine_rights(const struct config *cfg, bool keep_bpf, struct confine_state *out)
{
	rights(cfg, CONFINE_APPLY, keep_bpf, out);
	return verdict(out, CONFINE_FILES);
}

int
confine_calls(struct confine_state *state)
{
	if (state->mode != CONFIG_CONFINE_OFF)
		confine_system_calls(CONFINE_APPLY, &state->part[CONFINE_SYSTEM_CALLS]);
	return verdict(state, CONFINE_SYSTEM_CALLS);
}
