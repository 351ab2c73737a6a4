/* Look-ups of target names, timed by the lifetime of their answers; see names.h. Called by smcrd*.c. */
#include "daemon/names/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/str.h"
#include "daemon/names/resolver.h"

#define ASKING_MAX 32 /* concurrent look-ups; the others wait */
#define NS_PER_S INT64_C(1000000000)

/* A name with its port: services with the same one share the answer. */
struct name {
	struct list_node node; /* in names->list; not linked once dropped */
	struct names *all;     /* NULL: dropped during its look-up */
	struct config_target spec;
	int64_t due_ns;
	bool asking;
	bool found; /* the last look-up succeeded */
	unsigned failed;
	/* As last logged: the reason or the addresses; a left out address. */
	char logged[ENDPOINT_WHY_MAX + CONFIG_TARGET_ADDRS_MAX * ADDR_STR_MAX], left_out[ADDR_STR_MAX];
};

struct names {
	struct loop *loop;
	struct targets_all *targets;
	void (*came)(void *arg, const char *service);
	void *arg;
	struct resolver *resolver; /* NULL: no resolver */
	struct list_node list;
	const struct config *cfg; /* of names_apply */
	unsigned asking;
};

/* The log state of a name that stays, which is in the old list, is kept. False: out of memory. */
static bool
add_name(struct names *all, struct list_node *old, const struct config_target *spec)
{
	if (LIST_FIND(struct name, known, &all->list, node, config_target_same(&known->spec, spec)) != NULL)
		return true;
	const struct name *was = LIST_FIND(struct name, known, old, node, config_target_same(&known->spec, spec));
	struct name *n = calloc(1, sizeof(*n));
	if (n == NULL)
		return false;
	if (was != NULL) {
		memcpy(n->logged, was->logged, sizeof(n->logged));
		memcpy(n->left_out, was->left_out, sizeof(n->left_out));
		n->found = was->found;
	}
	n->all = all;
	n->spec = *spec;
	n->spec.addrs = NULL;
	n->spec.addr_cnt = 0;
	n->due_ns = INT64_MIN;
	list_push(&all->list, &n->node);
	return true;
}

/* -- answers -- */

/* Leaves out addresses where the daemon itself listens: a zone could connect services to each other. */
static void
leave_out_ours(const struct names *all, struct resolver_answer *a)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < a->cnt; i++) {
		if (!config_is_ours(all->cfg, &a->addrs[i].ss))
			a->addrs[cnt++] = a->addrs[i];
		else if (a->left_out_cnt++ == 0)
			a->left_out = a->addrs[i].ss;
	}
	if (cnt == 0 && a->why == NULL)
		a->why = config_only_ours;
	a->cnt = cnt;
}

/* Passes the answer to all targets with this name. Returns how many services have no address. */
static unsigned
update_targets(const struct name *n, const struct resolver_answer *a)
{
	const struct names *all = n->all;
	unsigned waiting = 0;

	for (unsigned i = 0; i < all->cfg->service_cnt; i++) {
		const struct config_service *svc = &all->cfg->services[i];

		for (unsigned nr = 0; nr < svc->to_cnt; nr++) {
			const bool same = config_target_same(&n->spec, &svc->to[nr]);
			struct targets *t = same ? targets_get(all->targets, svc) : NULL;

			if (t == NULL)
				continue;
			if (a->cnt == 0)
				waiting += targets_unresolved(t, nr, a->why);
			else if (targets_set(t, nr, n->spec.srv, a->addrs, a->cnt))
				all->came(all->arg, svc->name);
			targets_put(all->targets, t);
		}
	}
	return waiting;
}

/* A fixed order, as name servers often change theirs with each answer. */
static int
by_bytes(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
names_describe(const struct resolver_answer *a, char *buf, size_t cap)
{
	char texts[CONFIG_TARGET_ADDRS_MAX][ADDR_STR_MAX];

	for (unsigned i = 0; i < a->cnt; i++)
		(void)addr_format_port(&a->addrs[i].ss, texts[i], sizeof(texts[i]));
	qsort(texts, a->cnt, sizeof(texts[0]), by_bytes);
	buf[0] = '\0';
	for (unsigned i = 0; i < a->cnt; i++)
		str_append(buf, cap, "%s%s", i > 0 ? "," : "", texts[i]);
}

static void
log_barred(struct name *n, const struct resolver_answer *a)
{
	char text[ADDR_STR_MAX] = "", name[CONFIG_TARGET_STR_MAX];

	if (a->left_out_cnt > 0)
		(void)addr_format_port(&a->left_out, text, sizeof(text));
	if (strcmp(n->left_out, text) == 0)
		return;
	memcpy(n->left_out, text, sizeof(n->left_out));
	if (a->left_out_cnt > 0)
		log_msg(LOG_LVL_WARNING,
		    "address of a name left out: name=%s address=%s addresses_left_out=%u why=\"%s\"",
		    config_target_str(&n->spec, name), text, a->left_out_cnt,
		    config_is_ours(n->all->cfg, &a->left_out)
		        ? "this daemon itself listens there"
		        : "a name server may not choose loopback, link-local or multicast "
		          "addresses: /etc/hosts may");
}

/* Logs each change once. */
static void
log_change(struct name *n, const struct resolver_answer *a, unsigned waiting, uint32_t next_s)
{
	char text[sizeof(n->logged)], name[CONFIG_TARGET_STR_MAX];
	bool first = n->logged[0] == '\0', was_found = n->found;

	if (a->why != NULL)
		(void)snprintf(text, sizeof(text), "%s", a->why);
	else
		names_describe(a, text, sizeof(text));
	n->found = a->why == NULL;
	if (strcmp(n->logged, text) == 0)
		return;
	memcpy(n->logged, text, sizeof(n->logged));
	(void)config_target_str(&n->spec, name);
	if (a->why != NULL)
		log_msg(LOG_LVL_WARNING, "name not found: name=%s why=\"%s\" services_waiting=%u again_in_s=%u", name,
		    text, waiting, next_s);
	else
		log_msg(first || was_found ? LOG_LVL_INFO : LOG_LVL_NOTICE, "%s: name=%s addresses=%s again_in_s=%u",
		    first           ? "name found"
		        : was_found ? "addresses of a name changed"
		                    : "name found again",
		    name, text, next_s);
}

static void
names_on_answer(void *arg, const struct resolver_answer *answer)
{
	struct resolver_answer own = *answer, *a = &own;
	struct name *n = arg;
	struct names *all = n->all;

	n->asking = false;
	if (all == NULL) {
		free(n);
		return;
	}
	all->asking--;
	leave_out_ours(all, a);
	log_barred(n, a);
	n->failed = a->why == NULL ? 0 : n->failed + 1;
	uint32_t next_s = dns_next_s(n->failed, a->lasts ? &a->ttl_s : NULL);
	n->due_ns = loop_now(all->loop) + next_s * NS_PER_S;
	log_change(n, a, update_targets(n, a), next_s);
	loop_again(all->loop);
}

static int64_t
names_turn(void *arg, int64_t now_ns)
{
	struct names *all = arg;
	int64_t next = INT64_MAX;

	LIST_EACH(struct name, n, &all->list, node) {
		if (n->asking)
			continue;
		if (n->due_ns > now_ns) {
			next = min_i64(next, n->due_ns);
		} else if (all->asking < ASKING_MAX) {
			n->asking = true;
			all->asking++;
			resolver_ask(all->resolver, n->spec.host, n->spec.srv, n->spec.port, names_on_answer, n);
		}
	}
	return min_i64(next, resolver_turn(all->resolver, now_ns));
}

int
names_new(struct loop *loop, struct targets_all *targets, void (*came)(void *arg, const char *service), void *arg,
    struct names **out)
{
	struct names *all = calloc(1, sizeof(*all));

	if (all == NULL)
		return -ENOMEM;
	*all = (struct names){ .loop = loop, .targets = targets, .came = came, .arg = arg };
	list_init(&all->list);
	int rc = resolver_new(loop, &all->resolver);
	if (rc == 0)
		rc = loop_add_turn(loop, names_turn, all);
	if (rc != 0 && rc != -ENOSYS) {
		resolver_free(all->resolver);
		free(all);
		return rc;
	}
	*out = all;
	return 0;
}

static void
drop_names(struct names *all, struct list_node *list)
{
	LIST_EACH(struct name, n, list, node) {
		list_remove(&n->node);
		if (n->asking)
			n->all = NULL;
		else
			free(n);
	}
	all->asking = 0;
}

void
names_apply(struct names *all, const struct config *cfg)
{
	struct list_node old;
	bool ok = true;

	if (all->resolver == NULL)
		return;
	all->cfg = cfg;
	list_move_all(&old, &all->list);
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		for (unsigned k = 0; k < cfg->services[i].to_cnt; k++)
			if (!config_target_is_literal(&cfg->services[i].to[k]))
				ok = add_name(all, &old, &cfg->services[i].to[k]) && ok;
	if (!ok)
		log_msg(LOG_LVL_ERROR, "out of memory: names are not looked up again until a reload");
	drop_names(all, &old);
	loop_again(all->loop);
}

unsigned
names_retry(struct names *all)
{
	unsigned cnt = 0;

	LIST_EACH(struct name, n, &all->list, node) {
		if (n->failed == 0 || n->asking)
			continue;
		n->due_ns = INT64_MIN;
		cnt++;
	}
	loop_again(all->loop);
	return cnt;
}

void
names_free(struct names *all)
{
	if (all == NULL)
		return;
	drop_names(all, &all->list);
	if (all->resolver != NULL)
		loop_del_turn(all->loop, names_turn, all);
	resolver_free(all->resolver);
	free(all);
}
