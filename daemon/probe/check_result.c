/* Result of a check; see check_result.h. */
#include "daemon/probe/check_result.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/addr.h"
#include "daemon/log/log_text.h"
#include "wire/clc.h"

#define SHOWN_MAX 48 /* bytes of a plain server's answer */

/* -- steps -- */

void
check_begin(struct check_result *r, int64_t now_ns)
{
	*r = (struct check_result){ .step = CHECK_TCP, .step_ns = now_ns, .begun_ns = now_ns };
}

void
check_step_end(struct check_result *r, enum check_step_result result, int64_t now_ns)
{
	r->steps[r->step].result = result;
	r->steps[r->step].took_ns = now_ns - r->step_ns;
	r->step_ns = now_ns;
}

void
check_step(struct check_result *r, enum check_step step, int64_t now_ns, const char *skipped)
{
	if (step <= r->step)
		return;
	if (r->steps[r->step].result == CHECK_STEP_NOT_REACHED)
		check_step_end(r, CHECK_STEP_OK, now_ns);
	r->step_ns = now_ns;
	while (++r->step < step) {
		r->steps[r->step].result = CHECK_STEP_SKIPPED;
		r->steps[r->step].text = skipped;
	}
}

void
check_end(struct check_result *r, int64_t now_ns)
{
	r->possible = r->finding == CHECK_POSSIBLE;
	if (r->steps[r->step].result == CHECK_STEP_NOT_REACHED)
		check_step_end(r, r->possible ? CHECK_STEP_OK : CHECK_STEP_FAILED, now_ns);
	r->took_ns = now_ns - r->begun_ns;
}

/* -- texts -- */

static void __attribute__((format(printf, 3, 4)))
say(struct check_result *r, enum check_finding finding, const char *fmt, ...)
{
	va_list ap;

	r->finding = finding;
	va_start(ap, fmt);
	(void)vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
}

/* The queue pair was not connected, or the first link not confirmed. */
static bool
is_of_link(const struct smcr_diag *d)
{
	return d->phase == SMCR_PHASE_CONNECT || d->phase == SMCR_PHASE_LINK;
}

void
check_say_declined(struct check_result *r, const char *peer)
{
	const struct smcr_diag *d = &r->diag;
	char addr[ADDR_STR_MAX], offered[CLC_TRANSPORTS_STR_MAX];
	const char *over = d->over != NULL ? d->over : "";

	if (d->peer != 0) {
		clc_transports_str(d->offered, offered);
		const bool late = d->peer == CLC_DIAG_SERVER_LATE;

		r->server = late ? CLC_SERVER_SILENT : r->server;
		say(r, late ? CHECK_SERVER_DOWN : CHECK_PEER_DECLINED, "%s declined: %s (0x%08x)%s%s%s%s", peer,
		    clc_diag_str(d->peer), d->peer, over[0] != '\0' ? " over " : "", over,
		    offered[0] != '\0' ? "; this side offers " : "", offered);
		return;
	}
	/* The local reason, with the device's detail and address. Silence mostly means a firewall. */
	bool at = d->detail != NULL && d->mpa_port != 0;

	say(r, is_of_link(d) ? CHECK_LINK_FAILED : CHECK_DECLINED,
	    "declined by this side: %s (0x%08x)%s%s%s%s%s%s%s%s%s", clc_diag_str(d->local), d->local,
	    over[0] != '\0' ? " over " : "", over, d->held_off ? ", held off after failures" : "",
	    d->detail != NULL ? ": " : "", d->detail != NULL ? d->detail : "", at ? " (" : "",
	    at ? log_text_mpa_peer(d, addr) : "", at ? ")" : "", at && d->silent ? ": firewall?" : "");
}

void
check_say_done(struct check_result *r, const char *peer)
{
	const struct smcr_peer_info *p = &r->group.peer;

	if (r->group.id == 0)
		say(r, CHECK_POSSIBLE, "rendezvous with %s done", peer);
	else if (p->version == 1)
		say(r, CHECK_POSSIBLE, "rendezvous with %s done: %s version 1", peer,
		    p->foreign ? "SMC-R" : "smcrd, SMC-R");
	else
		say(r, CHECK_POSSIBLE, "rendezvous with %s done: SMC-R version 2.%u, EID %s, %s%s%s", peer, p->release,
		    p->eid, clc_os_str(p->os), p->host[0] != '\0' ? ", host " : "", p->host);
}

void
check_say_server(struct check_result *r, const char *peer, int64_t now_ns)
{
	check_step(r, CHECK_SERVER, now_ns, NULL);
	if (r->server == CLC_SERVER_UNSAID) {
		check_step_end(r, CHECK_STEP_SKIPPED, now_ns);
		r->steps[CHECK_SERVER].text = "the peer does not say it: it is no smcrd, or an older one";
	} else if (r->server != CLC_SERVER_UP) {
		say(r, CHECK_SERVER_DOWN, "SMC-R with %s works, but the server behind it is down: %s", peer,
		    clc_server_str(r->server));
	}
}

/* The first line, with unprintable characters as dots. */
static void
show_bytes(const struct clc_in *in, char text[SHOWN_MAX + 1])
{
	unsigned n = 0;

	while (n < SHOWN_MAX && n < in->len && in->buf[n] != '\r' && in->buf[n] != '\n') {
		text[n] = in->buf[n] >= ' ' && in->buf[n] < 0x7f && in->buf[n] != '"' ? (char)in->buf[n] : '.';
		n++;
	}
	text[n] = '\0';
}

void
check_say_broken(struct check_result *r, const char *peer, const struct check_break *b)
{
	bool proposed = r->diag.phase == SMCR_PHASE_CLC || r->diag.phase == SMCR_PHASE_NONE;
	bool ended = b->reason == SMCR_R_TCP_RESET || b->reason == SMCR_R_TCP_FIN;
	const char *reason = smcr_reason_str(b->reason), *sep = b->detail[0] != '\0' ? ": " : "";
	char bytes[SHOWN_MAX + 1];

	if (proposed && b->reason == SMCR_R_PROTOCOL) {
		show_bytes(b->in, bytes);
		say(r, CHECK_PLAIN, "%s: %s%s%s: a plain server, it answers \"%s\"%s", peer, reason, sep, b->detail,
		    bytes, b->hint);
	} else if (proposed && ended && b->tls != NULL) {
		say(r, CHECK_NO_TLS, "%s: no TLS: %s%s", peer,
		    b->tls[0] != '\0'
		        ? b->tls
		        : "peer ended it after the handshake, as one that refuses our name (peer_names): see its log",
		    b->hint);
	} else if (proposed && ended) {
		say(r, CHECK_CLOSED,
		    "%s %s the connection on our Proposal: a plain server, or an smcrd that refuses this host (allow, "
		    "max_connections): see its log%s",
		    peer, b->reason == SMCR_R_TCP_RESET ? "reset" : "closed", b->hint);
	} else if (proposed && b->reason == SMCR_R_CLC_TIMEOUT) {
		say(r, CHECK_SILENT, "%s: %s%s%s; %s%s", peer, reason, sep, b->detail,
		    b->acked ? "its TCP has acknowledged the Proposal" : "its TCP has not acknowledged the Proposal",
		    b->hint);
	} else {
		say(r, is_of_link(&r->diag) ? CHECK_LINK_FAILED : CHECK_CLOSED, "%s: %s%s%s%s", peer, reason, sep,
		    b->detail, b->hint);
	}
}

/* -- health -- */

enum health_state
check_health(const struct check_result *r, bool must_smcr, const char **why)
{
	const bool reached = r->finding != CHECK_UNREACHABLE && r->finding != CHECK_CLOSED &&
	    r->finding != CHECK_NO_TLS && r->finding != CHECK_SILENT && r->finding != CHECK_TIMEOUT &&
	    r->finding != CHECK_PLAIN;

	*why = r->text;
	if (r->finding == CHECK_NOT_TRIED)
		return HEALTH_NONE;
	if (r->server > CLC_SERVER_UP) {
		*why = clc_server_str(r->server);
		return HEALTH_DOWN;
	}
	if (must_smcr && r->finding != CHECK_POSSIBLE)
		return HEALTH_DOWN;
	if (r->server == CLC_SERVER_UP) {
		*why = "";
		return HEALTH_UP;
	}
	if (!reached)
		return HEALTH_DOWN;
	if (r->finding == CHECK_POSSIBLE)
		*why = "the peer does not say it: it is no smcrd, or an older one";
	return r->diag.held_off ? HEALTH_HELD_OFF : HEALTH_UNKNOWN;
}
