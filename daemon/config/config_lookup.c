/* Look-ups of host, user and group names after all other checks; see config_int.h. May block on the name service. */
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "daemon/config/config_int.h"

#define ENTRY_MIN 1024 /* initial memory for an entry of the user or group database */
#define ENTRY_MAX (1u << 20)

/* Only a warning where the daemon can look the name up again. */
static void
not_found(struct config_build *b, unsigned line, const char *host, const char *why)
{
	if (config_names_wait())
		config_warning(b, line, "cannot resolve %s: %s: its service waits until the name resolves", host, why);
	else
		config_error(b, line, "cannot resolve %s: %s", host, why);
}

/* After a name server did not answer, the other names are not looked up here, as each could take as long. */
static void
look_up_target(struct config_build *b, unsigned line, struct config_target *t)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list;

	if (t->addr_cnt > 0 || t->host[0] == '\0' || t->srv || (config_names_wait() && b->silent))
		return;
	int rc = getaddrinfo(t->host, NULL, &hints, &list);
	if (rc != 0) {
		b->again += rc == EAI_AGAIN && !config_names_wait();
		b->silent = b->silent || rc == EAI_AGAIN;
		not_found(b, line, t->host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return;
	}
	t->addrs = calloc(CONFIG_TARGET_ADDRS_MAX, sizeof(*t->addrs));
	for (const struct addrinfo *ai = list; ai != NULL && t->addrs != NULL; ai = ai->ai_next) {
		if ((ai->ai_family != AF_INET && ai->ai_family != AF_INET6) || t->addr_cnt == CONFIG_TARGET_ADDRS_MAX)
			continue;
		memcpy(&t->addrs[t->addr_cnt], ai->ai_addr, ai->ai_addrlen);
		addr_set_port(&t->addrs[t->addr_cnt++], t->port);
	}
	if (t->addrs == NULL)
		config_error(b, line, "out of memory");
	else if (t->addr_cnt == 0)
		not_found(b, line, t->host, "no IPv4 or IPv6 address");
	freeaddrinfo(list);
}

/* As daemon/names does with later answers. */
static void
leave_out(struct config_build *b, unsigned line, struct config_target *t)
{
	const bool dns = !config_name_is_this_hosts(t->host);
	const char *why = NULL;
	unsigned cnt = 0;

	for (unsigned i = 0; i < t->addr_cnt; i++) {
		if (dns && config_addr_is_special(&t->addrs[i]))
			why = config_only_special;
		else if (config_is_ours(b->cfg, &t->addrs[i]))
			why = config_only_ours;
		else
			t->addrs[cnt++] = t->addrs[i];
	}
	if (cnt == 0 && why != NULL)
		not_found(b, line, t->host, why);
	t->addr_cnt = cnt;
}

/* The next service of a range has the same host: one look-up, and one error, is enough. */
static void
take_over(struct config_build *b, struct config_target *t, const struct config_target *before)
{
	if (t->addr_cnt > 0 || before->addr_cnt == 0)
		return;
	t->addrs = calloc(CONFIG_TARGET_ADDRS_MAX, sizeof(*t->addrs));
	if (t->addrs == NULL) {
		config_error(b, 0, "out of memory");
		return;
	}
	for (; t->addr_cnt < before->addr_cnt; t->addr_cnt++) {
		t->addrs[t->addr_cnt] = before->addrs[t->addr_cnt];
		addr_set_port(&t->addrs[t->addr_cnt], t->port);
	}
}

/* 0, or an errno: ENOENT for an unknown name. */
static int
find_id(bool is_user, const char *name, uint32_t *out)
{
	int rc = ERANGE;
	char *buf = NULL;

	for (size_t cap = ENTRY_MIN; rc == ERANGE && cap <= ENTRY_MAX; cap *= 2) {
		struct passwd pw, *user = NULL;
		struct group gr, *group = NULL;

		free(buf);
		buf = malloc(cap);
		if (buf == NULL)
			return ENOMEM;
		rc = is_user ? getpwnam_r(name, &pw, buf, cap, &user) : getgrnam_r(name, &gr, buf, cap, &group);
		if (rc == 0 && user == NULL && group == NULL)
			rc = ENOENT;
		else if (rc == 0)
			*out = user != NULL ? pw.pw_uid : gr.gr_gid;
	}
	free(buf);
	return rc;
}

static void
look_up_id(struct config_build *b, unsigned line, const char *word, struct config_id *id)
{
	/* Not set, or a number. */
	if (id->name[0] == '\0' || id->id != UINT32_MAX)
		return;
	int rc = find_id(strcmp(word, "user") == 0, id->name, &id->id);
	if (rc == ENOENT) {
		config_error(b, line, "there is no %s \"%s\"", word, id->name);
	} else if (rc != 0) {
		b->again++;
		config_error(b, line, "cannot look up the %s \"%s\": %s", word, id->name, strerror(rc));
	}
}

static void
look_up_admins(struct config_build *b)
{
	const config_setting_t *src = config_member(b->files[0].root, "control");
	struct config_id *id = &b->cfg->control_admin_group;
	struct config_admins *admins = &b->cfg->control_admins;
	const bool named = id->name[0] != '\0';

	strcpy(admins->group, named ? id->name : CONFIG_ADMIN_GROUP);
	look_up_id(b, config_line(src, "admin_group"), "group", id);
	admins->gid = id->id;
	const int rc = named ? 0 : find_id(false, CONFIG_ADMIN_GROUP, &admins->gid);
	if (rc == 0) {
		admins->orders = CONFIG_ORDERS_GROUP;
	} else if (rc == ENOENT && config_is_chosen(CONFIG_AT_CONTROL, src, "mode", b->cfg)) {
		admins->orders = CONFIG_ORDERS_ALL;
		config_warning(b, config_line(src, "mode"),
		    "control.mode alone permits orders, as there is no group " CONFIG_ADMIN_GROUP
		    ": create it, or set control.admin_group");
	}
}

void
config_look_up(struct config_build *b)
{
	look_up_admins(b);
	for (unsigned i = 0; i < b->cfg->service_cnt; i++) {
		struct config_service *svc = &b->cfg->services[i];
		const config_setting_t *src = b->service_src[i];
		const bool of_range = i > 0 && b->service_src[i - 1] == src;

		/* All services of a range have the same number of targets. */
		for (unsigned k = 0; k < svc->to_cnt; k++) {
			if (of_range)
				take_over(b, &svc->to[k], &svc[-1].to[k]);
			else
				look_up_target(b, config_line(src, "to"), &svc->to[k]);
			if (svc->to[k].addr_cnt > 0 && !config_target_is_literal(&svc->to[k]))
				leave_out(b, config_line(src, "to"), &svc->to[k]);
		}
		look_up_id(b, config_line(src, "listen_owner"), "user", &svc->listen_owner);
		look_up_id(b, config_line(src, "listen_group"), "group", &svc->listen_group);
		for (unsigned k = 0; k < svc->allow_users_cnt; k++)
			look_up_id(b, config_line(src, "allow_users"), "user", &svc->allow_users[k]);
	}
}
