/* Reading scenario texts; see script.h. */
#include "tests/scenario/script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The rest of a line. */
struct words {
	const char *s;
};

static void
skip_blanks(struct words *w)
{
	w->s += strspn(w->s, " \t");
}

/* The next words are these. */
static bool
take(struct words *w, const char *text)
{
	size_t n = strlen(text);
	bool word = text[n - 1] != ':';

	skip_blanks(w);
	if (strncmp(w->s, text, n) != 0 || (word && w->s[n] != '\0' && strchr(" \t:", w->s[n]) == NULL))
		return false;
	w->s += n;
	return true;
}

static bool
take_number(struct words *w, uint32_t *out)
{
	char *end;

	skip_blanks(w);
	unsigned long v = strtoul(w->s, &end, 10);
	if (end == w->s || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	w->s = end;
	return true;
}

static bool
take_quoted(struct words *w, char *out, size_t cap)
{
	skip_blanks(w);
	if (*w->s != '"')
		return false;
	size_t n = strcspn(w->s + 1, "\"");
	if (w->s[1 + n] != '"' || n == 0 || n >= cap)
		return false;
	memcpy(out, w->s + 1, n);
	out[n] = '\0';
	w->s += n + 2;
	return true;
}

static bool
at_end(struct words *w)
{
	skip_blanks(w);
	return *w->s == '\0';
}

/* "1st", "2nd", ...; 1 when nothing is said. */
static unsigned
take_nth(struct words *w)
{
	static const char *const ends[] = { "st", "nd", "rd", "th" };
	struct words try = *w;
	uint32_t n;

	if (!take_number(&try, &n) || n == 0)
		return 1;
	for (unsigned i = 0; i < 4; i++)
		if (strncmp(try.s, ends[i], 2) == 0) {
			w->s = try.s + 2;
			return n;
		}
	return 1;
}

static bool
take_message(struct words *w, struct script_event *ev)
{
	/* Longer names first. */
	static const struct {
		const char *name;
		enum script_msg msg;
		enum llc_type llc;
	} names[] = {
		{ "CONFIRM LINK", SCRIPT_LLC, LLC_CONFIRM_LINK },
		{ "ADD LINK CONTINUATION", SCRIPT_LLC, LLC_ADD_LINK_CONT },
		{ "ADD LINK", SCRIPT_LLC, LLC_ADD_LINK },
		{ "REQUEST ADD LINK", SCRIPT_LLC, LLC_REQUEST_ADD_LINK },
		{ "DELETE LINK", SCRIPT_LLC, LLC_DELETE_LINK },
		{ "CONFIRM RKEY CONTINUATION", SCRIPT_LLC, LLC_CONFIRM_RKEY_CONT },
		{ "CONFIRM RKEY", SCRIPT_LLC, LLC_CONFIRM_RKEY },
		{ "DELETE RKEY", SCRIPT_LLC, LLC_DELETE_RKEY },
		{ "TEST LINK", SCRIPT_LLC, LLC_TEST_LINK },
		{ "CDC", SCRIPT_CDC, 0 },
		{ "write", SCRIPT_WRITE, 0 },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (take(w, names[i].name)) {
			ev->msg = names[i].msg;
			ev->llc = names[i].llc;
			return true;
		}
	return false;
}

static bool
take_host(struct words *w, unsigned *host)
{
	return take(w, "host") && take_number(w, host) && *host < PLAN_HOSTS_MAX;
}

static bool
take_event(struct words *w, struct script_event *ev)
{
	uint32_t link;

	*ev = (struct script_event){ .response = -1, .link = -1 };
	(void)take(w, "the");
	ev->nth = take_nth(w);
	if (take(w, "line")) {
		ev->kind = EVENT_LINE;
		return take_quoted(w, ev->text, sizeof(ev->text));
	}
	if (!take_message(w, ev))
		return false;
	if (take(w, "request"))
		ev->response = 0;
	else if (take(w, "response"))
		ev->response = 1;
	else
		ev->failover = take(w, "F");
	if (!take(w, "from") || !take_host(w, &ev->host))
		return false;
	if (take(w, "on link")) {
		if (!take_number(w, &link))
			return false;
		ev->link = (int)link;
	}
	ev->kind = take(w, "arrives") ? EVENT_ARRIVES : take(w, "is sent") ? EVENT_SENT : EVENT_NEVER;
	return ev->kind != EVENT_NEVER;
}

static bool
take_fate(struct words *w, enum sim_fate *fate)
{
	static const struct {
		const char *text;
		enum sim_fate fate;
	} fates[] = { { "lose it", SIM_LOSE }, { "tear it", SIM_TEAR }, { "unack it", SIM_UNACKED },
		{ "ghost it", SIM_GHOST }, { "drop it", SIM_DROP } };

	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
		if (take(w, fates[i].text)) {
			*fate = fates[i].fate;
			return true;
		}
	return false;
}

static bool
take_cut(struct words *w, enum sim_cut *cut)
{
	*cut = take(w, "late") ? SIM_CUT_LATE : take(w, "silent") ? SIM_CUT_SILENT : SIM_CUT_RESET;
	return *cut != SIM_CUT_RESET || take(w, "reset");
}

static bool
take_link_of_host(struct words *w, struct script_rule *r)
{
	uint32_t link;

	if (!take(w, "link") || !take_number(w, &link) || link == 0 || link > 255)
		return false;
	r->link = (uint8_t)link;
	return take(w, "of") && take_host(w, &r->host);
}

static bool
take_fault(struct words *w, struct plan_fault *f)
{
	*f = (struct plan_fault){ 0 };
	for (int k = FAULT_BREAK; k < FAULT_KIND_CNT && f->kind == FAULT_NONE; k++)
		if (take(w, plan_fault_str((enum fault_kind)k)))
			f->kind = (enum fault_kind)k;
	return f->kind != FAULT_NONE && take_host(w, &f->host) && take(w, "arg") && take_number(w, &f->arg) &&
	    take(w, "for") && take_number(w, &f->for_ms) && take(w, "ms");
}

static bool
take_action(struct words *w, struct script_rule *r)
{
	if (take_fate(w, &r->fate)) {
		r->act = ACT_FATE;
		return r->when.kind == EVENT_ARRIVES;
	}
	if (take(w, "hold it until")) {
		r->act = ACT_HOLD_UNTIL;
		return r->when.kind == EVENT_ARRIVES && take_event(w, &r->until);
	}
	if (take(w, "hold it for")) {
		r->act = ACT_HOLD_FOR;
		return r->when.kind == EVENT_ARRIVES && take_number(w, &r->ms) && take(w, "ms");
	}
	if (take(w, "break")) {
		r->act = ACT_BREAK;
		return take_link_of_host(w, r) && take_cut(w, &r->cut);
	}
	if (take(w, "delete")) {
		r->act = ACT_DELETE_LINK;
		return take_link_of_host(w, r);
	}
	if (take(w, "rebalance")) {
		r->act = ACT_REBALANCE;
		return take_host(w, &r->host);
	}
	r->act = ACT_FAULT;
	return take(w, "fault") && take_fault(w, &r->fault);
}

static bool
take_limit(struct words *w, struct script_expect *x)
{
	static const char *const ops[] = { ">=", "<=", "==" };
	uint32_t v;

	for (unsigned i = 0; i < 3; i++)
		if (take(w, ops[i]) && take_number(w, &v)) {
			memcpy(x->op, ops[i], 3);
			x->value = v;
			return true;
		}
	return false;
}

static bool
take_expect(struct words *w, struct script_expect *x)
{
	static const char *const stats[] = { "well", "reset", "smcr", "fallback", "groups" };
	unsigned host;

	*x = (struct script_expect){ .host = -1, .op = ">=", .value = 1 };
	if (take(w, "no line")) {
		x->kind = EXPECT_LINE;
		memcpy(x->op, "==", 3);
		x->value = 0;
		return take_quoted(w, x->what, sizeof(x->what));
	}
	if (take(w, "line")) {
		x->kind = EXPECT_LINE;
		return take_quoted(w, x->what, sizeof(x->what)) && (at_end(w) || take_limit(w, x));
	}
	if (take(w, "links of")) {
		x->kind = EXPECT_LINKS;
		if (!take_host(w, &host))
			return false;
		x->host = (int)host;
		return take_limit(w, x);
	}
	for (unsigned i = 0; i < 5; i++)
		if (take(w, stats[i])) {
			x->kind = EXPECT_STAT;
			snprintf(x->what, sizeof(x->what), "%s", stats[i]);
			return take_limit(w, x);
		}
	if (take_host(w, &host))
		x->host = (int)host;
	skip_blanks(w);
	size_t n = strcspn(w->s, " \t");
	if (n == 0 || n >= sizeof(x->what))
		return false;
	memcpy(x->what, w->s, n);
	w->s += n;
	return take_limit(w, x);
}

static bool
take_rule(struct words *w, struct script *sc, bool timed)
{
	struct script_rule *r = &sc->rule[sc->rule_cnt];

	if (sc->rule_cnt == SCRIPT_RULES_MAX)
		return false;
	*r = (struct script_rule){ 0 };
	if (timed) {
		r->when.kind = EVENT_TIME;
		if (!take_number(w, &r->when.ms) || !take(w, "ms"))
			return false;
	} else if (!take_event(w, &r->when)) {
		return false;
	}
	sc->rule_cnt++;
	return take(w, ":") && take_action(w, r);
}

static bool
rest(struct words *w, char *out, size_t cap)
{
	skip_blanks(w);
	snprintf(out, cap, "%s", w->s);
	w->s += strlen(w->s);
	return *out != '\0';
}

static bool
load_line(struct script *sc, struct plan *p, const char *line)
{
	struct words w = { line };

	if (at_end(&w))
		return true;
	if (take(&w, "when"))
		return take_rule(&w, sc, false) && at_end(&w);
	if (take(&w, "at"))
		return take_rule(&w, sc, true) && at_end(&w);
	if (take(&w, "expect"))
		return sc->expect_cnt < SCRIPT_EXPECTS_MAX && take_expect(&w, &sc->expect[sc->expect_cnt++]) &&
		    at_end(&w);
	if (take(&w, "excuse"))
		return rest(&w, sc->excuse, sizeof(sc->excuse));
	if (take(&w, "todo:"))
		return rest(&w, sc->todo, sizeof(sc->todo));
	/* Settings, several a line. */
	for (char one[64]; !at_end(&w);) {
		size_t n = strcspn(w.s, " \t");

		if (n >= sizeof(one))
			return false;
		memcpy(one, w.s, n);
		one[n] = '\0';
		w.s += n;
		if (plan_set(p, one) != 0)
			return false;
	}
	return true;
}

int
script_load(struct script *sc, struct plan *p, FILE *in)
{
	char line[256];

	*sc = (struct script){ 0 };
	plan_plain(p);
	for (int nr = 1; fgets(line, sizeof(line), in) != NULL; nr++) {
		size_t n = strcspn(line, "#\n");

		while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
			n--;
		line[n] = '\0';
		if (!load_line(sc, p, line))
			return nr;
	}
	p->script = sc;
	return 0;
}
