/* Names of hosts, users and groups, when all else of a file is right: see config_int.h. Asks the name service, so it may take
 * its time. */
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "daemon/config/config_int.h"

#define TARGET_ADDRS_MAX 16
#define ENTRY_MIN 1024 /* memory for an entry of the user or group database */
#define ENTRY_MAX (1u << 20)

static void
look_up_target(struct config_build *b, unsigned line, struct config_target *t)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list;

	if (t->addr_cnt > 0 || t->host[0] == '\0')
		return;
	int rc = getaddrinfo(t->host, NULL, &hints, &list);
	if (rc != 0) {
		b->again += rc == EAI_AGAIN;
		config_error(
		    b, line, "cannot resolve %s: %s", t->host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return;
	}
	t->addrs = calloc(TARGET_ADDRS_MAX, sizeof(*t->addrs));
	for (const struct addrinfo *ai = list; ai != NULL && t->addrs != NULL; ai = ai->ai_next) {
		if ((ai->ai_family != AF_INET && ai->ai_family != AF_INET6) || t->addr_cnt == TARGET_ADDRS_MAX)
			continue;
		memcpy(&t->addrs[t->addr_cnt], ai->ai_addr, ai->ai_addrlen);
		addr_set_port(&t->addrs[t->addr_cnt++], t->port);
	}
	if (t->addr_cnt == 0)
		config_error(b, line, "cannot resolve %s: %s", t->host,
		    t->addrs == NULL ? "out of memory" : "no IPv4 or IPv6 address");
	freeaddrinfo(list);
}

enum database {
	USERS,
	GROUPS,
};

/* 0, or an errno: ENOENT, there is none of this name. */
static int
find_id(enum database db, const char *name, uint32_t *out)
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
		rc = db == USERS ? getpwnam_r(name, &pw, buf, cap, &user) : getgrnam_r(name, &gr, buf, cap, &group);
		if (rc == 0 && user == NULL && group == NULL)
			rc = ENOENT;
		else if (rc == 0)
			*out = user != NULL ? pw.pw_uid : gr.gr_gid;
	}
	free(buf);
	return rc;
}

static void
look_up_id(struct config_build *b, unsigned line, enum database db, struct config_id *id)
{
	const char *word = db == USERS ? "user" : "group";

	/* Not set, or a number. */
	if (id->name[0] == '\0' || id->id != UINT32_MAX)
		return;
	int rc = find_id(db, id->name, &id->id);
	if (rc == ENOENT) {
		config_error(b, line, "there is no %s \"%s\"", word, id->name);
	} else if (rc != 0) {
		b->again++;
		config_error(b, line, "cannot look up the %s \"%s\": %s", word, id->name, strerror(rc));
	}
}

void
config_look_up(struct config_build *b)
{
	for (unsigned i = 0; i < b->cfg->service_cnt; i++) {
		struct config_service *svc = &b->cfg->services[i];
		const struct config_setting_t *src = b->service_src[i];

		look_up_target(b, config_line(src, "to"), &svc->to);
		look_up_id(b, config_line(src, "listen_owner"), USERS, &svc->listen_owner);
		look_up_id(b, config_line(src, "listen_group"), GROUPS, &svc->listen_group);
		for (unsigned k = 0; k < svc->allow_users_cnt; k++)
			look_up_id(b, config_line(src, "allow_users"), USERS, &svc->allow_users[k]);
	}
}
