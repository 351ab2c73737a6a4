/* Two ends of a connection with PSKs, for tests of streams. */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tls/tls_int.h"
#include "unit.h"

#define KEY_A "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
#define KEY_B "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static inline void
no_error(void *arg, bool warning, const char *setting, const char *text)
{
	(void)arg;
	(void)warning;
	ck_abort_msg("%s %s", setting, text);
}

static inline void
count_error(void *arg, bool warning, const char *setting, const char *text)
{
	(void)setting;
	(void)text;
	ck_assert(!warning);
	++*(int *)arg;
}

static inline struct tls_ctx *
load(const char *name, const char *text, mode_t mode, int *errors)
{
	char path[] = "/tmp/check_tls.XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
	const struct tls_files files = { "", "", "", "", name, path, 3600, 0 };
	struct tls_ctx *ctx = tls_ctx_load(
	    &files, TLS_AS_CLIENT | TLS_AS_SERVER, errors != NULL ? count_error : no_error, errors);
	unlink(path);
	return ctx;
}

/* Two ends of one connection: a is the client. */
struct ends {
	struct tls_ctx *ctx_a, *ctx_b;
	int fd[2];
	struct tls_io *a, *b;
};

/* Of connected sockets alone. */
static inline void
ends_pair(struct ends *e)
{
	*e = (struct ends){ 0 };
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, e->fd), 0);
}

static inline void
ends_init(struct ends *e, const char *file_a, const char *file_b, const char *names_a, const char *names_b)
{
	ends_pair(e);
	e->ctx_a = load("gw-a", file_a, 0600, NULL);
	e->ctx_b = load("gw-b", file_b, 0640, NULL);
	e->a = tls_io_new(e->ctx_a, true, e->fd[0], names_a, "gw-b.example.org");
	e->b = tls_io_new(e->ctx_b, false, e->fd[1], names_b, "");
	ck_assert(e->a != NULL && e->b != NULL);
}

static inline void
ends_fini(struct ends *e)
{
	tls_io_free(e->a);
	tls_io_free(e->b);
	tls_ctx_put(e->ctx_a);
	tls_ctx_put(e->ctx_b);
	close(e->fd[0]);
	close(e->fd[1]);
}

/* The results of both. */
static inline void
shake(struct ends *e, int *a, int *b)
{
	*a = *b = 0;
	for (int i = 0; i < 20 && (*a == 0 || *b == 0); i++) {
		if (*a == 0)
			*a = tls_io_handshake(e->a);
		if (*b == 0)
			*b = tls_io_handshake(e->b);
	}
}
