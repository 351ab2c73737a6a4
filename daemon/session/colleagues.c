/* Connections from one worker to another; see colleagues.h. */
#include "daemon/session/colleagues.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/mailbox.h"
#include "daemon/net.h"
#include "daemon/session/service.h"

#define UNDER_WAY_MAX 64 /* a worker that is busy for long leaves the others theirs */

struct parcel {
	struct mail mail;
	colleague_admit admit;
	struct colleague *from, *to;
	enum config_kind kind;
	char service[CONFIG_NAME_MAX];
	int fd;
	struct sockaddr_storage peer;
};

/* In the thread of the receiver, or when there is none any more. */
static void
on_parcel(struct mail *mail)
{
	struct parcel *p = CONTAINER_OF(mail, struct parcel, mail);
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
colleagues_deal(struct service *svc, int fd, const struct sockaddr_storage *peer, colleague_admit admit)
{
	const struct worker_place *place = &svc->pool->place;
	const unsigned nr = (place->nr + svc->listener.dealt++) % place->cnt;
	struct colleague *to = &place->all[nr];

	if (nr == place->nr || atomic_load(&to->under_way) >= UNDER_WAY_MAX)
		return false;
	struct parcel *p = malloc(sizeof(*p));
	if (p == NULL)
		return false;
	*p = (struct parcel){
		.mail = { .fn = on_parcel },
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
