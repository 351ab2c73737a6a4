/* A build without OpenSSL; see tls.h. No context exists, so no stream does. */
#include <errno.h>

#include "tls/tls.h"

bool
tls_is_built(void)
{
	return false;
}

struct tls_ctx *
tls_ctx_load(const struct tls_files *files, unsigned uses, tls_tell tell, void *arg)
{
	(void)files;
	(void)uses;
	tell(arg, false, "cert", "needs OpenSSL, which this smcrd was built without");
	return NULL;
}

int64_t
tls_ctx_not_after(const struct tls_ctx *ctx)
{
	(void)ctx;
	return 0;
}

const struct tls_stamp *
tls_ctx_stamp(const struct tls_ctx *ctx)
{
	(void)ctx;
	return NULL;
}

struct tls_ctx *
tls_ctx_get(struct tls_ctx *ctx)
{
	return ctx;
}

void
tls_ctx_put(struct tls_ctx *ctx)
{
	(void)ctx;
}

void
tls_scope(const struct tls_ctx *ctx, unsigned level, const char *names, const char *host, uint8_t out[TLS_SCOPE_LEN])
{
	(void)ctx;
	(void)level;
	(void)names;
	(void)host;
	(void)out;
}

void
tls_io_scope(const struct tls_io *io, unsigned level, uint8_t out[TLS_SCOPE_LEN])
{
	(void)io;
	(void)level;
	(void)out;
}

struct tls_io *
tls_io_new(struct tls_ctx *ctx, bool client, int fd, const char *names, const char *host)
{
	(void)ctx;
	(void)client;
	(void)fd;
	(void)names;
	(void)host;
	return NULL;
}

void
tls_io_resume(struct tls_io *io, const char *at)
{
	(void)io;
	(void)at;
}

bool
tls_io_is_resumed(const struct tls_io *io)
{
	(void)io;
	return false;
}

void
tls_io_free(struct tls_io *io)
{
	(void)io;
}

const struct tls_counts *
tls_counts(void)
{
	static const struct tls_counts none;

	return &none;
}

void
tls_count(enum tls_failure failure)
{
	(void)failure;
}

int
tls_io_handshake(struct tls_io *io)
{
	(void)io;
	return -EPROTO;
}

ssize_t
tls_io_read(struct tls_io *io, void *buf, size_t len)
{
	(void)io;
	(void)buf;
	(void)len;
	return -EPROTO;
}

ssize_t
tls_io_write(struct tls_io *io, const void *buf, size_t len, bool more)
{
	(void)io;
	(void)buf;
	(void)len;
	(void)more;
	return -EPROTO;
}

int
tls_io_finish(struct tls_io *io)
{
	(void)io;
	return 0;
}

bool
tls_io_has_bytes(const struct tls_io *io)
{
	(void)io;
	return false;
}

const char *
tls_io_why(const struct tls_io *io)
{
	(void)io;
	return "";
}

bool
tls_io_is_silent(const struct tls_io *io)
{
	(void)io;
	return false;
}

const struct tls_who *
tls_io_who(const struct tls_io *io)
{
	(void)io;
	return NULL;
}

unsigned
tls_io_suite(const struct tls_io *io)
{
	(void)io;
	return 0;
}

int
tls_io_secret(struct tls_io *io, uint8_t secret[TLS_SECRET_LEN])
{
	(void)io;
	(void)secret;
	return -EPROTO;
}

struct tls_io *
tls_link_dial(int fd, const uint8_t secret[TLS_SECRET_LEN], const struct tls_link *at)
{
	(void)fd;
	(void)secret;
	(void)at;
	return NULL;
}

struct tls_io *
tls_link_accept(int fd, tls_link_find find, void *arg)
{
	(void)fd;
	(void)find;
	(void)arg;
	return NULL;
}

const struct tls_link *
tls_link_proven(const struct tls_io *io)
{
	(void)io;
	return NULL;
}

bool
tls_io_is_drained(const struct tls_io *io)
{
	(void)io;
	return true;
}

struct tls_proof *
tls_io_proof(const struct tls_io *io)
{
	(void)io;
	return NULL;
}

const struct tls_ctx *
tls_io_ctx(const struct tls_io *io)
{
	(void)io;
	return NULL;
}

struct tls_proof *
tls_proof_get(struct tls_proof *p)
{
	return p;
}

void
tls_proof_put(struct tls_proof *p)
{
	(void)p;
}

const struct tls_who *
tls_proof_who(const struct tls_proof *p)
{
	(void)p;
	return NULL;
}

bool
tls_proof_holds(const struct tls_proof *p, const struct tls_ctx *ctx, bool client, char why[TLS_WHY_MAX])
{
	(void)p;
	(void)ctx;
	(void)client;
	(void)why;
	return true;
}

bool
tls_proof_permitted(const struct tls_proof *p, const char *names, const char *host)
{
	(void)p;
	(void)names;
	(void)host;
	return true;
}
