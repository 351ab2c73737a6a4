/* A leg in TLS; see leg.h. Its flags say when a call may succeed: reads until TLS has nothing more, as it keeps bytes that
 * came with earlier ones. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/leg/leg.h"
#include "daemon/state/service_state.h"
#include "daemon/target/targets.h"

static bool
start_tls(struct leg *leg, const struct settings *st, const char *host)
{
	const bool client = st->cfg.kind == CONFIG_INGRESS;

	leg->tls = tls_io_new(st->svc->pool->tls_ctx, client, leg->io.fd, st->cfg.peer_names, host);
	return leg->tls != NULL;
}

const char *
leg_tls_host(const struct settings *st, const struct sockaddr_storage *to)
{
	unsigned nr = 0;

	if (st->cfg.tls_name[0] != '\0')
		return st->cfg.tls_name;
	if (st->cfg.to_cnt == 0) /* peer_names says whom it permits */
		return "";
	return st->cfg.to_cnt == 1 || targets_find(st->targets, to, &nr) ? st->cfg.to[nr].host : NULL;
}

bool
leg_tls_dial(struct leg *leg, const struct settings *st, const struct sockaddr_storage *to)
{
	const char *host = leg_tls_host(st, to);

	char at[ADDR_STR_MAX];

	if (host == NULL || !start_tls(leg, st, host))
		return false;
	tls_io_resume(leg->tls, addr_format(to, at, sizeof(at)));
	return true;
}

bool
leg_tls_accept(struct leg *leg, const struct settings *st)
{
	return start_tls(leg, st, "");
}

void
leg_tls_end(struct leg *leg)
{
	tls_io_free(leg->tls);
	leg->tls = NULL;
}

/* A client of "accept" has no more than one of "auth". */
static uint8_t
level_of(const struct settings *st)
{
	return st->cfg.secure == CONFIG_SECURE_ACCEPT ? CONFIG_SECURE_AUTH : st->cfg.secure;
}

bool
leg_tls_scope(const struct settings *st, const struct sockaddr_storage *to, struct smcr_scope *scope)
{
	const struct tls_ctx *ctx = st->svc->pool->tls_ctx;
	const char *host = to != NULL ? leg_tls_host(st, to) : "";

	*scope = (struct smcr_scope){ { 0 } };
	if (st->cfg.secure == CONFIG_SECURE_OFF)
		return true;
	if (ctx == NULL || host == NULL)
		return false;
	tls_scope(ctx, level_of(st), st->cfg.peer_names, host, scope->b);
	return true;
}

void
leg_tls_describe(const struct leg *leg, const struct settings *st, struct smcr_open *o)
{
	if (leg->tls == NULL) {
		/* "accept", and a client in clear. A check of any peer has no settings. */
		if (st != NULL && st->cfg.secure != CONFIG_SECURE_OFF)
			o->ticket = 0;
		return;
	}
	o->remote.level = level_of(st);
	tls_io_scope(leg->tls, o->remote.level, o->scope.b);
	memcpy(o->remote.name_id, tls_io_who(leg->tls)->id, sizeof(o->remote.name_id));
	(void)snprintf(o->peer_name, sizeof(o->peer_name), "%s", tls_io_who(leg->tls)->name);
	o->remote.proof = tls_io_proof(leg->tls);
	o->only_tls = st->cfg.secure == CONFIG_SECURE_REQUIRED;
	o->in_tls = tls_io_secret(leg->tls, o->secret) == 0;
	if (!o->in_tls)
		o->tcp_only = "the TLS stream gives no secret for links";
}

const char *
leg_tls_why(const struct leg *leg)
{
	return leg->tls != NULL ? tls_io_why(leg->tls) : "";
}

static int
leg_tls_failed(struct leg *leg, ssize_t err)
{
	if (err == -ENODATA)
		leg->flags |= LEG_CUT;
	if (leg->err == 0)
		leg->err = err == -ENODATA ? ECONNRESET : (int)-err;
	leg->flags |= LEG_READABLE;
	return -leg->err;
}

int
leg_handshake(struct leg *leg)
{
	int n = tls_io_handshake(leg->tls);

	return n < 0 ? leg_tls_failed(leg, n) : n;
}

ssize_t
leg_tls_read(struct leg *leg, const struct iovec *iov)
{
	ssize_t n = tls_io_read(leg->tls, iov->iov_base, iov->iov_len);

	if (n > 0)
		return n;
	if (n < 0 && n != -EAGAIN)
		return leg_tls_failed(leg, n);
	leg->flags &= ~(unsigned)(LEG_READABLE | LEG_URGENT | LEG_FRESH);
	if (n == 0)
		leg->flags |= LEG_EOF;
	return n == 0 ? 0 : -leg->err;
}

ssize_t
leg_tls_write(struct leg *leg, const struct iovec *iov, int cnt)
{
	ssize_t sum = 0;

	for (int i = 0; i < cnt; i++) {
		for (size_t off = 0; off < iov[i].iov_len;) {
			ssize_t n = tls_io_write(
			    leg->tls, (const char *)iov[i].iov_base + off, iov[i].iov_len - off, false);

			if (n == -EAGAIN) {
				leg->flags &= ~(unsigned)LEG_WRITABLE;
				return sum;
			}
			if (n < 0)
				return leg_tls_failed(leg, n);
			leg->flags |= LEG_SENT;
			off += (size_t)n;
			sum += n;
		}
	}
	return sum;
}

bool
leg_finish(struct leg *leg)
{
	if (leg->tls == NULL || (leg->flags & (LEG_NOTIFIED | LEG_SHUT)) != 0 || leg->err != 0)
		return true;
	int n = tls_io_finish(leg->tls);
	if (n == -EAGAIN) {
		leg->flags &= ~(unsigned)LEG_WRITABLE;
		return false;
	}
	leg->flags |= LEG_NOTIFIED;
	return true;
}
