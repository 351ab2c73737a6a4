/* Associations: later handshakes by the keys of one by certificates. */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tls_ends.h"
#include "tls_exporter.h"

#define NAME "spiffe://unit/x"
#define HOUR 3600
#define DAY (24 * HOUR)

static time_t now;

static time_t
the_time(time_t *t)
{
	(void)t;
	return now;
}

/* A certificate that is its own CA, with its key, valid for 30 days. */
static void
make_files(char *cert_path, char *key_path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	FILE *cert = fdopen(mkstemp(cert_path), "w"), *out = fdopen(mkstemp(key_path), "w");
	X509V3_CTX v3;

	X509V3_set_ctx(&v3, x, x, NULL, NULL, 0);
	X509_EXTENSION *san = X509V3_EXT_conf_nid(NULL, &v3, NID_subject_alt_name, "URI:" NAME);
	ck_assert(X509_set_version(x, 2) == 1 && ASN1_INTEGER_set(X509_get_serialNumber(x), rand()) == 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -HOUR);
	X509_gmtime_adj(X509_getm_notAfter(x), 30 * DAY);
	ck_assert(X509_set_pubkey(x, key) == 1 && X509_add_ext(x, san, -1) == 1 && X509_sign(x, key, EVP_sha256()) > 0);
	ck_assert(PEM_write_X509(cert, x) == 1 && PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1);
	fclose(cert);
	fclose(out);
	X509_EXTENSION_free(san);
	X509_free(x);
	EVP_PKEY_free(key);
}

static struct tls_ctx *
load_cert(const char *cert, const char *key, unsigned resume_s)
{
	const struct tls_files files = { cert, key, cert, "", "", "", resume_s, 0 };

	return tls_ctx_load(&files, TLS_AS_CLIENT | TLS_AS_SERVER, no_error, NULL);
}

static struct tls_ctx *ctx, *none;

static void
setup(void)
{
	char cert[] = "/tmp/check_assoc.XXXXXX", key[] = "/tmp/check_assoc.XXXXXX";

	now = time(NULL);
	tls_clock = the_time;
	make_files(cert, key);
	ctx = load_cert(cert, key, 2 * HOUR);
	none = load_cert(cert, key, 0);
	unlink(cert);
	unlink(key);
}

static void
teardown(void)
{
	tls_ctx_put(ctx);
	tls_ctx_put(none);
}

UNIT_FIXTURE(setup, teardown);

/* One handshake: 1 if by an association at both ends, 0: by certificates; -1: it failed. */
static int
meet(struct tls_ctx *client, struct tls_ctx *server, const char *at, const char *names_a, const char *names_b)
{
	struct ends e;
	int a, b, how = -1;

	ends_pair(&e);
	e.a = tls_io_new(client, true, e.fd[0], names_a, "gw");
	e.b = tls_io_new(server, false, e.fd[1], names_b, "");
	tls_io_resume(e.a, at);
	shake(&e, &a, &b);
	if (a == 1 && b == 1) {
		char c;

		ck_assert(tls_io_write(e.b, "x", 1, false) == 1 && tls_io_read(e.a, &c, 1) == 1);
		how = tls_io_is_resumed(e.b);
		ck_assert_int_eq(tls_io_is_resumed(e.a), how);
		ck_assert_str_eq(tls_io_who(e.a)->name, NAME);
		ck_assert_str_eq(tls_io_who(e.b)->name, NAME);
		ck_assert_ptr_eq(tls_io_proof(e.a), tls_io_proof(e.b)); /* of the same certificate */
	}
	ends_fini(&e);
	return how;
}

static int
again(const char *at)
{
	return meet(ctx, ctx, at, NAME, NAME);
}

START_TEST(the_second_handshake_is_by_an_association)
{
	ck_assert_int_eq(again("a1"), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(again("a1"), 1);
	ck_assert_int_eq(again("a2"), 0); /* another host */
	ck_assert_int_eq(again("a2"), 1);
}

START_TEST(it_ends_with_its_time)
{
	ck_assert_int_eq(again("b"), 0);
	now += 2 * HOUR - 1;
	ck_assert_int_eq(again("b"), 1);
	now += 1;
	ck_assert_int_eq(again("b"), 0);
	ck_assert_int_eq(again("b"), 1);
	now -= 10; /* a clock that was set back */
	ck_assert_int_eq(again("b"), 0);
}

/* 0: with ours or a CRL, 1: with the peer's. */
START_LOOP_TEST(it_ends_with_either_certificate, 0, 2)
{
	ctx->until = _i == 0 ? now + 30 * DAY : INT64_MAX;
	ctx->resume_s = 100 * DAY;
	ck_assert_int_eq(again("c"), 0);
	now += 29 * DAY;
	ck_assert_int_eq(again("c"), 1);
	now += 2 * DAY;
	ck_assert_int_eq(again("c"), 0);
}

START_TEST(names_are_judged_each_time)
{
	ck_assert_int_eq(again("d"), 0);
	ck_assert_int_eq(meet(ctx, ctx, "d", "spiffe://unit/*", "*"), 1);
	ck_assert_int_eq(meet(ctx, ctx, "d", NAME, "spiffe://unit/y"), -1);
	ck_assert_int_eq(meet(ctx, ctx, "d", "spiffe://unit/y", NAME), -1);
	ck_assert_int_eq(again("d"), 1);
}

START_TEST(other_keys_do_not_find_it)
{
	ck_assert_int_eq(again("e"), 0);
	ctx->digest[0] ^= 1; /* a reload with another certificate, CA or CRL */
	ck_assert_int_eq(again("e"), 0);
	ck_assert_int_eq(again("e"), 1);
	ctx->digest[0] ^= 1;
}

/* The client's own entry is none of a server: a reflected ClientHello would be its (Selfie). And a server that has none, as
 * after a restart, goes on with certificates. */
START_TEST(a_server_takes_its_own_alone)
{
	ck_assert_int_eq(meet(ctx, none, "f", NAME, NAME), 0); /* the server keeps none */
	ck_assert_int_eq(meet(ctx, ctx, "f", NAME, NAME), 0);
	ck_assert_int_eq(again("f"), 1);
	ck_assert_int_eq(meet(ctx, none, "f", NAME, NAME), 0);
	ck_assert_int_eq(meet(none, ctx, "f", NAME, NAME), 0);
}

START_TEST(the_oldest_of_a_name_goes)
{
	char at[16];

	for (int i = 0; i < 17; i++) {
		snprintf(at, sizeof(at), "g%d", i);
		ck_assert_int_eq(again(at), 0);
	}
	for (int i = 1; i < 17; i++) {
		snprintf(at, sizeof(at), "g%d", i);
		ck_assert_int_eq(again(at), 1);
	}
	ck_assert_int_eq(again("g0"), 0);
}

/* Bytes on the wire are those of doc/secure.md. */
START_TEST(a_client_hello_has_the_identity)
{
	static const char eye[] = "smcrd-A1";
	struct ends e;
	char hello[4096];

	ck_assert_int_eq(again("h"), 0);
	ends_pair(&e);
	e.a = tls_io_new(ctx, true, e.fd[0], NAME, "gw");
	tls_io_resume(e.a, "h");
	ck_assert_int_eq(tls_io_handshake(e.a), 0);
	ssize_t n = recv(e.fd[1], hello, sizeof(hello), 0);
	char *id = memmem(hello, (size_t)n, eye, 8);
	ck_assert_ptr_nonnull(id);
	ck_assert_uint_eq((unsigned char)id[-1], 24);
	ends_fini(&e);
}

/* Key and identity are those of doc/secure.md, by the first handshake alone: later ones leave them. */
START_TEST(key_and_identity_are_exporters_of_the_first_handshake)
{
	struct ends e;

	SSL_CTX_set_keylog_callback(ctx->client, keep_exporter);
	ck_assert_int_eq(again("i"), 0);
	SSL_CTX_set_keylog_callback(ctx->client, NULL);
	for (int i = 0; i < 2; i++) {
		ends_pair(&e);
		e.a = tls_io_new(ctx, true, e.fd[0], NAME, "gw");
		tls_io_resume(e.a, "i");
		ck_assert_uint_eq(e.a->assoc.psk.len, TLS_KEY_LEN);
		is_exporter(e.a->assoc.psk.key, TLS_KEY_LEN, "EXPORTER-smcrd-assoc-v1");
		ck_assert_mem_eq(e.a->identity, "smcrd-A1", 8);
		is_exporter((const uint8_t *)e.a->identity + 8, 16, "EXPORTER-smcrd-assoc-id-v1");
		ends_fini(&e);
		ck_assert_int_eq(again("i"), 1);
	}
}

/* Selfie: the ClientHello comes back to the host that has sent it. Its key is not used; what proves a name then is a
 * certificate, and that of this host is no peer's. */
START_TEST(a_reflected_hello_is_not_taken)
{
	static const char peer[] = "spiffe://unit/y";
	struct ends e;
	int a, b;

	/* The peer keeps its entry elsewhere. */
	ck_assert_int_eq(meet(ctx, none, "j", NAME, NAME), 0);
	ends_pair(&e);
	e.a = tls_io_new(ctx, true, e.fd[0], NAME, "gw");
	e.b = tls_io_new(ctx, false, e.fd[1], peer, "");
	tls_io_resume(e.a, "j");
	ck_assert_ptr_nonnull(e.a->assoc.proof);
	ck_assert_int_eq(tls_io_handshake(e.a), 0);
	ck_assert_int_eq(tls_io_handshake(e.b), 0);
	ck_assert_ptr_null(e.b->assoc.proof);
	ck_assert_int_eq(SSL_session_reused(e.b->ssl), 0);
	shake(&e, &a, &b);
	ck_assert_int_eq(b, -EPROTO);
	ck_assert_str_eq(tls_io_why(e.b), "peer is '" NAME "', not one of peer_names");
	ends_fini(&e);
}
