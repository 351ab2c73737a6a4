/* Hands connections to other workers; see accept_balance.h. */
#include "daemon/service/accept_balance.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/loop/mailbox.h"
#include "daemon/net/net.h"
#include "daemon/service/service.h"

#define UNDER_WAY_MAX 64 /* unhandled connections per worker: a busy worker gets no more */

struct handed_conn {
	struct mail mail;
	colleague_admit admit;
	struct worker_peer *from, *to;
	enum config_kind kind;
	char service[CONFIG_NAME_MAX];
	int fd;
	struct sockaddr_storage peer;
};

/* In the receiver's thread, or after the receiver has ended. */
static void
on_handed_conn(struct mail *mail)
{
	struct handed_conn *p = CONTAINER_OF(mail, struct handed_conn, mail);
	struct service *svc = p->to->pool != NULL ? service_find(p->to->pool, p->kind, p->service) : NULL;

	atomic_fetch_sub(&p->to->under_way, 1);
	if (svc == NULL && p->to->pool != NULL && p->to != p->from) {
		p->to = p->from;
		atomic_fetch_add(&p->to->under_way, 1);
		mailbox_post(p->to->mail, &p->mail);
		return;
	}
	if (svc != NULL)
		p->admit(svc, p->fd, &p->peer);
	else
		net_reset(p->fd);
	free(p);
}

bool
accept_balance(struct service *svc, int fd, const struct sockaddr_storage *peer, colleague_admit admit)
{
	const struct worker_place *place = &svc->pool->place;
	const unsigned nr = (place->nr + svc->listener.dealt++) % place->cnt;
	struct worker_peer *to = &place->all[nr];

	if (nr == place->nr || atomic_load(&to->under_way) >= UNDER_WAY_MAX)
		return false;
	struct handed_conn *p = malloc(sizeof(*p));
	if (p == NULL)
		return false;
	*p = (struct handed_conn){
		.mail = { .fn = on_handed_conn },
		.admit = admit,
		.from = &place->all[place->nr],
		.to = to,
		.kind = svc->settings->cfg.kind,
		.fd = fd,
		.peer = *peer,
	};
	memcpy(p->service, svc->settings->cfg.name, sizeof(p->service));
	atomic_fetch_add(&to->under_way, 1);
	mailbox_post(to->mail, &p->mail);
	return true;
}
