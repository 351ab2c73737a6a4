/* Streams with PSKs over sockets; certificates are in tests/integration/check_tls.py. */
#include <errno.h>

#include "tls_ends.h"

static void
up(struct ends *e)
{
	int a, b;

	ends_init(e, "# peers\n\ngw-b:" KEY_A "\n", "gw-x:" KEY_B "\ngw-a:" KEY_A, "psk:gw-b", "psk:gw-a");
	shake(e, &a, &b);
	ck_assert_msg(a == 1 && b == 1, "%s; %s", tls_io_why(e->a), tls_io_why(e->b));
}

START_TEST(both_ends_are_proven)
{
	struct ends e;
	char buf[64];

	up(&e);
	ck_assert_str_eq(tls_io_who(e.a)->name, "psk:gw-b");
	ck_assert_str_eq(tls_io_who(e.b)->name, "psk:gw-a");
	/* SHA-256("smcrd name v1" || 00 || "psk:gw-a"), by sha256sum(1). */
	static const uint8_t id[4] = { 0xc8, 0xb2, 0xe6, 0x55 };
	ck_assert_mem_eq(tls_io_who(e.b)->id, id, sizeof(id));
	ck_assert_int_eq(tls_io_read(e.a, buf, sizeof(buf)), -EAGAIN);
	ck_assert_int_eq(tls_io_write(e.a, "hello", 5, false), 5);
	ck_assert_int_eq(tls_io_read(e.b, buf, 2), 2);
	ck_assert(tls_io_has_bytes(e.b));
	ck_assert_int_eq(tls_io_read(e.b, buf + 2, sizeof(buf) - 2), 3);
	ck_assert_mem_eq(buf, "hello", 5);
	/* One direction ends, the other goes on. */
	ck_assert_int_eq(tls_io_finish(e.a), 0);
	ck_assert_int_eq(tls_io_read(e.b, buf, sizeof(buf)), 0);
	ck_assert_int_eq(tls_io_write(e.b, "late", 4, false), 4);
	ck_assert_int_eq(tls_io_read(e.a, buf, sizeof(buf)), 4);
	ck_assert_str_eq(tls_io_why(e.a), "");
	ends_fini(&e);
}

START_TEST(a_full_socket_takes_part_and_goes_on)
{
	static uint8_t out[300000], in[300000];
	struct ends e;
	size_t sent = 0, got = 0;

	up(&e);
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + i / 256);
	while (got < sizeof(in)) {
		ssize_t n = sent < sizeof(out) ? tls_io_write(e.a, out + sent, sizeof(out) - sent, false) : -EAGAIN;

		ck_assert(n > 0 || n == -EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		n = tls_io_read(e.b, in + got, 1000);
		ck_assert(n > 0 || n == -EAGAIN);
		got += n > 0 ? (size_t)n : 0;
	}
	ck_assert_mem_eq(in, out, sizeof(in));
	ends_fini(&e);
}

START_TEST(a_cut_is_no_end)
{
	struct ends e;
	char buf[16];

	up(&e);
	shutdown(e.fd[0], SHUT_WR);
	ck_assert_int_eq(tls_io_read(e.b, buf, sizeof(buf)), -ENODATA);
	ck_assert_str_eq(tls_io_why(e.b), "the TLS stream ended without close_notify");
	ends_fini(&e);
}

/* From a to b, a record whose last byte is changed. */
static void
send_changed(struct ends *e)
{
	char buf[128];

	ck_assert_int_eq(tls_io_write(e->a, "hello", 5, false), 5);
	ssize_t n = read(e->fd[1], buf, sizeof(buf));
	ck_assert_int_gt(n, 5);
	buf[n - 1] ^= 1;
	ck_assert_int_eq(write(e->fd[0], buf, (size_t)n), n);
}

START_TEST(a_changed_record_is_bad)
{
	struct ends e;
	char buf[128];

	up(&e);
	send_changed(&e);
	ck_assert_int_eq(tls_io_read(e.b, buf, sizeof(buf)), -EPROTO);
	ck_assert_str_eq(tls_io_why(e.b), "TLS: bad record");
	ends_fini(&e);
}

/* What both ends say. A client is through before the server has looked at it, and then reads the alert. */
static void
expect_refused(const char *file_b, const char *names_b, const char *why_a, const char *why_b)
{
	struct ends e;
	char buf[16];
	int a, b;

	ends_init(&e, "gw-b:" KEY_A "\n", file_b, "psk:gw-b", names_b);
	shake(&e, &a, &b);
	ck_assert_int_lt(b, 0);
	if (a == 1 && why_a != NULL)
		a = (int)tls_io_read(e.a, buf, sizeof(buf));
	ck_assert(a < 0 || why_a == NULL);
	ck_assert_str_eq(tls_io_why(e.b), why_b);
	if (why_a != NULL)
		ck_assert_str_eq(tls_io_why(e.a), why_a);
	ends_fini(&e);
}

START_TEST(refusals_have_words)
{
	expect_refused("gw-x:" KEY_A, "*", "peer does not know our PSK name 'gw-a', or it is not 'gw-b'",
	    "PSK name not known, or not for 'gw-b'");
	expect_refused("gw-a:" KEY_B, "*", "the two keys differ", "key differs: PSK name 'gw-a'");
	expect_refused("gw-a:" KEY_A, "psk:gw-x", NULL, "peer is 'psk:gw-a', not one of peer_names");
}

/* The first key of a peer is offered, each is accepted: both hosts can change theirs at different times. */
START_TEST(a_peer_may_have_two_keys)
{
	static const char both[] = "gw-b:" KEY_A "\ngw-b@2:" KEY_B, swapped[] = "gw-b@2:" KEY_B "\ngw-b:" KEY_A,
	                  second[] = "gw-b@2:" KEY_B, server[] = "gw-x:" KEY_A "\ngw-a:" KEY_A "\ngw-a@2:" KEY_B;
	static const char *const clients[] = { both, swapped, second };
	struct ends e;
	int a, b;

	for (unsigned i = 0; i < 3; i++) {
		ends_init(&e, clients[i], server, "psk:gw-b", "psk:gw-a");
		shake(&e, &a, &b);
		ck_assert_msg(a == 1 && b == 1, "%s; %s", tls_io_why(e.a), tls_io_why(e.b));
		ck_assert_str_eq(e.b->psk->tag, i == 0 ? "" : "2");
		ck_assert_str_eq(tls_io_who(e.b)->name, "psk:gw-a");
		ends_fini(&e);
	}
}

/* A server that lacks the tag, or has another key with it. */
START_LOOP_TEST(a_key_with_a_tag_is_no_other, 0, 2)
{
	static const char *const says[2][2] = {
		{ "peer does not know our PSK name 'gw-a', or it is not 'gw-b', or lacks its key @2",
		    "PSK name not known, or not for 'gw-b'" },
		{ "the two keys differ", "key differs: PSK name 'gw-a@2'" },
	};
	struct ends e;
	int a, b;

	ends_init(&e, "gw-b@2:" KEY_A, _i == 0 ? "gw-a:" KEY_A : "gw-a:" KEY_A "\ngw-a@2:" KEY_B, "psk:gw-b", "*");
	shake(&e, &a, &b);
	ck_assert(a < 0 && b < 0);
	ck_assert_str_eq(tls_io_why(e.a), says[_i][0]);
	ck_assert_str_eq(tls_io_why(e.b), says[_i][1]);
	ends_fini(&e);
}

/* What a key has proven lasts as long as that key, wherever it stands. */
START_TEST(a_proof_holds_as_long_as_its_key)
{
	struct tls_ctx *both = load("gw-b", "gw-a@2:" KEY_B "\ngw-a:" KEY_A, 0600, NULL),
	               *next = load("gw-b", "gw-a@2:" KEY_B, 0600, NULL);
	char why[TLS_WHY_MAX];
	struct ends e;

	up(&e);
	ck_assert(tls_proof_holds(tls_io_proof(e.b), both, false, why));
	ck_assert(!tls_proof_holds(tls_io_proof(e.b), next, false, why));
	ck_assert_str_eq(why, "the key of 'psk:gw-a' has changed");
	ends_fini(&e);
	tls_ctx_put(both);
	tls_ctx_put(next);
}

/* Selfie: the ClientHello of gw-a for gw-b, sent back to gw-a. */
START_TEST(a_reflected_hello_is_refused)
{
	struct ends e;

	ends_init(&e, "gw-b:" KEY_A "\n", "gw-a:" KEY_A "\n", "psk:gw-b", "*");
	tls_io_free(e.b);
	e.b = tls_io_new(e.ctx_a, false, e.fd[1], "*", "");
	ck_assert_int_eq(tls_io_handshake(e.a), 0);
	ck_assert_int_lt(tls_io_handshake(e.b), 0);
	ck_assert_str_eq(tls_io_why(e.b), "PSK name not known, or not for 'gw-a'");
	ends_fini(&e);
}

START_TEST(a_scope_is_keys_level_and_names)
{
	static const struct {
		const char *name, *file, *names, *host;
		unsigned level;
	} cases[] = {
		{ "gw-a", "gw-b:" KEY_A "\n", "psk:gw-b", "", 3 },
		{ "gw-a", "gw-b:" KEY_B "\n", "psk:gw-b", "", 3 },
		{ "gw-x", "gw-b:" KEY_A "\n", "psk:gw-b", "", 3 },
		{ "gw-a", "gw-b:" KEY_A "\ngw-c:" KEY_A "\n", "psk:gw-b", "", 3 },
		{ "gw-a", "gw-b:" KEY_A "\n", "psk:gw-b\npsk:gw-c", "", 3 },
		{ "gw-a", "gw-b:" KEY_A "\n", "psk:gw-b", "", 2 },
		{ "gw-a", "gw-b:" KEY_A "\n", "", "gw-b.example.org", 3 },
		{ "gw-a", "gw-b:" KEY_A "\n", "", "gw-c.example.org", 3 },
	};
	enum { CNT = sizeof(cases) / sizeof(cases[0]) };
	uint8_t scope[CNT][TLS_SCOPE_LEN], again[TLS_SCOPE_LEN];

	for (unsigned i = 0; i < CNT; i++) {
		struct tls_ctx *ctx = load(cases[i].name, cases[i].file, 0600, NULL);

		tls_scope(ctx, cases[i].level, cases[i].names, cases[i].host, scope[i]);
		for (unsigned k = 0; k < i; k++)
			ck_assert_msg(memcmp(scope[k], scope[i], TLS_SCOPE_LEN) != 0, "scopes %u and %u", k, i);
		tls_ctx_put(ctx);
	}
	/* The same files again, and a stream of theirs; with names, the host says nothing. */
	struct ends e;
	ends_init(&e, cases[0].file, cases[0].file, cases[0].names, "*");
	tls_scope(e.ctx_a, 3, cases[0].names, "other", again);
	ck_assert_mem_eq(again, scope[0], sizeof(again));
	tls_io_scope(e.a, 3, again);
	ck_assert_mem_eq(again, scope[0], sizeof(again));
	ends_fini(&e);
}

START_TEST(a_client_without_the_psk_does_not_start)
{
	struct tls_ctx *ctx = load("gw-a", "gw-b:" KEY_A "\n", 0600, NULL);

	ck_assert(tls_io_new(ctx, true, 0, "psk:gw-x", "") == NULL);
	ck_assert(tls_io_new(ctx, true, 0, "*", "") == NULL);
	ck_assert(tls_io_new(NULL, true, 0, "*", "") == NULL);
	tls_ctx_put(ctx);
}

START_TEST(words_of_other_peers)
{
	static const struct {
		const char *bytes, *why;
	} cases[] = {
		{ "\xe2\xd4\xc3\xd9 and more", "peer does not speak TLS: it answered CLC" },
		{ "SSH-2.0-x\r\n", "peer does not speak TLS" },
		{ "", "peer closed at our ClientHello: is secure set there?" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ends e;

		ends_init(&e, "gw-b:" KEY_A "\n", "gw-a:" KEY_A "\n", "psk:gw-b", "*");
		ck_assert_int_eq(tls_io_handshake(e.a), 0);
		ck_assert_int_eq(write(e.fd[1], cases[i].bytes, strlen(cases[i].bytes)), strlen(cases[i].bytes));
		shutdown(e.fd[1], SHUT_WR);
		ck_assert_int_lt(tls_io_handshake(e.a), 0);
		ck_assert_str_eq(tls_io_why(e.a), cases[i].why);
		ends_fini(&e);
	}
}

START_TEST(psk_files_are_checked)
{
	static const char *const bad[] = { "", "# nothing\n", "gw-a\n", ":" KEY_A, "gw-a:", "gw-a:00",
		"gw-a:" KEY_A "0", "gw-a:" KEY_A "zz", "gw a:" KEY_A, "a>b:" KEY_A, "smcrd-a:" KEY_A,
		"gw-a:" KEY_A "\ngw-a:" KEY_B, "gw-a:" KEY_A KEY_A "00", "gw-a@:" KEY_A, "@2:" KEY_A, "gw-a@2@3:" KEY_A,
		"gw-a@a>b:" KEY_A, "gw-a@1234567890123456:" KEY_A, "gw-a@2:" KEY_A "\ngw-a@2:" KEY_B };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int errors = 0;

		ck_assert_msg(load("gw", bad[i], 0600, &errors) == NULL, "%s", bad[i]);
		ck_assert_int_eq(errors, 1);
	}
	int errors = 0;
	ck_assert(load("gw", "gw-a:" KEY_A, 0604, &errors) == NULL && errors == 1);
	struct tls_ctx *ctx = load("gw", "gw-a:" KEY_A KEY_B "  \r\n", 0640, NULL);
	tls_ctx_put(ctx);
}

/* As many reloads as streams hold: each stream keeps its context. */
START_TEST(contexts_and_streams_are_not_bounded_by_a_heap)
{
	static struct tls_io *ios[5000];
	struct tls_ctx *ctx[20];
	int fd[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	for (size_t i = 0; i < 20; i++)
		ctx[i] = load("gw-a", "gw-b:" KEY_A "\n", 0600, NULL);
	for (size_t i = 0; i < 5000; i++) {
		ios[i] = tls_io_new(ctx[i % 20], true, fd[0], "psk:gw-b", "");
		ck_assert_ptr_nonnull(ios[i]);
		ck_assert_msg(tls_io_handshake(ios[i]) == 0, "stream %zu: %s", i, tls_io_why(ios[i]));
	}
	for (size_t i = 0; i < 5000; i++)
		tls_io_free(ios[i]);
	for (size_t i = 0; i < 20; i++)
		tls_ctx_put(ctx[i]);
	close(fd[0]);
	close(fd[1]);
}

static void
update_key(struct tls_io *io)
{
	ck_assert_int_eq(SSL_key_update(io->ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
	ck_assert_int_eq(SSL_do_handshake(io->ssl), 1);
}

static void
one_byte(struct ends *e)
{
	char c = 'x';

	ck_assert_int_eq(tls_io_write(e->a, &c, 1, false), 1);
	ck_assert_int_eq(tls_io_read(e->b, &c, 1), 1);
}

/* Eight, and one more for each thousand records. */
START_TEST(a_flood_of_key_updates_ends_the_stream)
{
	struct ends e;
	char c;

	up(&e);
	for (int i = 0; i < 8; i++)
		update_key(e.a);
	one_byte(&e);
	for (int i = 1; i < 1000; i++)
		one_byte(&e);
	update_key(e.a);
	one_byte(&e);
	ck_assert_str_eq(tls_io_why(e.b), "");
	for (int i = 0; i < 100; i++)
		update_key(e.a);
	ck_assert_int_eq(tls_io_read(e.b, &c, 1), -EPROTO);
	ck_assert_str_eq(tls_io_why(e.b), "peer sends too many TLS messages without data");
	ck_assert_int_eq(tls_io_read(e.b, &c, 1), -EPROTO);
	ends_fini(&e);
}

/* Headers of a record and of a ClientHello: its length, or pieces of it, at once and byte by byte. */
START_TEST(a_first_message_is_bounded)
{
	static const struct {
		uint8_t bytes[9];
		bool refused;
	} cases[] = {
		{ { 22, 3, 1, 0x40, 0, 1, 0, 0x40, 0 }, false },
		{ { 22, 3, 1, 0x40, 0, 1, 0, 0x40, 1 }, true },
		{ { 22, 3, 1, 0x40, 0, 1, 2, 0, 0 }, true },
		{ { 22, 3, 1, 0, 3, 1, 0, 1, 22 }, true },
	};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *bytes = cases[i / 2].bytes;
		struct ends e;
		int n = 0;

		ends_init(&e, "gw-b:" KEY_A "\n", "gw-a:" KEY_A "\n", "psk:gw-b", "psk:gw-a");
		for (size_t at = 0, len = i % 2 == 0 ? 9 : 1; at < 9 && n == 0; at += len) {
			ck_assert_int_eq(write(e.fd[0], bytes + at, len), len);
			n = tls_io_handshake(e.b);
		}
		ck_assert_int_eq(n, cases[i / 2].refused ? -EPROTO : 0);
		ck_assert_str_eq(
		    tls_io_why(e.b), cases[i / 2].refused ? "peer's first message is too long, or in pieces" : "");
		ends_fini(&e);
	}
}

/* 0: a server without ALPN; 1: a client. */
START_LOOP_TEST(alpn_is_for_both_ends, 0, 2)
{
	struct ends e;
	int a, b;

	ends_init(&e, "gw-b:" KEY_A "\n", "gw-a:" KEY_A "\n", "psk:gw-b", "psk:gw-a");
	if (_i == 0) {
		SSL_CTX_set_alpn_select_cb(e.ctx_b->server, NULL, NULL);
		tls_io_free(e.b);
		e.b = tls_io_new(e.ctx_b, false, e.fd[1], "psk:gw-a", "");
	} else {
		ck_assert_int_eq(SSL_set_alpn_protos(e.a->ssl, NULL, 0), 0);
	}
	shake(&e, &a, &b);
	ck_assert_int_lt(_i == 0 ? a : b, 0);
	ck_assert_str_eq(tls_io_why(_i == 0 ? e.a : e.b), "the peer is no smcrd: its ALPN lacks smcrd/1");
	ends_fini(&e);
}

/* Two gateways have the same key for gw-a: what it sends to gw-b is not taken by gw-c. */
START_TEST(a_hello_for_another_is_refused)
{
	struct ends e;
	int a, b;

	ends_init(&e, "gw-b:" KEY_A "\n", "gw-a:" KEY_A "\n", "psk:gw-b", "*");
	(void)snprintf(e.ctx_b->name, sizeof(e.ctx_b->name), "gw-c");
	shake(&e, &a, &b);
	ck_assert_int_lt(b, 0);
	ck_assert_str_eq(tls_io_why(e.b), "PSK name not known, or not for 'gw-c'");
	ends_fini(&e);
}

START_TEST(a_sender_updates_its_key)
{
	struct ends e;

	up(&e);
	e.a->records = (1u << 23) - 2;
	one_byte(&e);
	ck_assert_uint_eq(e.b->messages, 0);
	one_byte(&e);
	one_byte(&e);
	ck_assert_uint_eq(e.b->messages, 1);
	ck_assert_uint_eq(e.a->records, 1);
	ends_fini(&e);
}

/* OpenSSL says so once: later it is as if the peer had ended the stream. */
START_TEST(a_failure_is_no_end_later)
{
	struct ends e;
	char buf[128];

	up(&e);
	send_changed(&e);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(tls_io_read(e.b, buf, sizeof(buf)), -EPROTO);
		ck_assert_int_eq(tls_io_read(e.a, buf, sizeof(buf)), -EPROTO);
	}
	ck_assert_str_eq(tls_io_why(e.a), "TLS alert of the peer: bad record mac");
	ck_assert_int_eq(tls_io_write(e.a, "hello", 5, false), -EPROTO);
	ends_fini(&e);
}

/* Its proof is shared by its connections, and judged by another file. */
START_TEST(a_proof_is_judged_by_later_files)
{
	struct tls_ctx *same = load("gw-b", "gw-a:" KEY_A "\ngw-c:" KEY_B, 0600, NULL);
	struct tls_ctx *other = load("gw-b", "gw-a:" KEY_B, 0600, NULL);
	struct tls_ctx *gone = load("gw-b", "gw-c:" KEY_A, 0600, NULL);
	struct ends e, f;
	char why[TLS_WHY_MAX];

	up(&e);
	up(&f);
	struct tls_proof *p = tls_proof_get(tls_io_proof(e.b));
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_eq(p, tls_io_proof(f.b));
	ck_assert_ptr_ne(p, tls_io_proof(e.a));
	ck_assert_ptr_eq(tls_io_ctx(e.b), e.ctx_b);
	ends_fini(&f);
	ends_fini(&e);
	ck_assert_str_eq(tls_proof_who(p)->name, "psk:gw-a");
	ck_assert(tls_proof_holds(p, same, false, why));
	ck_assert_str_eq(why, "");
	ck_assert(!tls_proof_holds(p, other, false, why));
	ck_assert_str_eq(why, "the key of 'psk:gw-a' has changed");
	ck_assert(!tls_proof_holds(p, gone, false, why));
	ck_assert_str_eq(why, "'psk:gw-a' is no longer in the PSK file");
	ck_assert(tls_proof_permitted(p, "psk:gw-x\npsk:gw-a", ""));
	ck_assert(tls_proof_permitted(p, "*", ""));
	ck_assert(!tls_proof_permitted(p, "psk:gw-x", "gw-a"));
	ck_assert(!tls_proof_permitted(p, "", "gw-a"));
	tls_proof_put(p);
	tls_ctx_put(same);
	tls_ctx_put(other);
	tls_ctx_put(gone);
}
