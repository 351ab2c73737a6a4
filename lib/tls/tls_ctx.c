/* Contexts from files; see tls.h. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tls/tls_int.h"

#define RSA_BITS_SLOW 2048
#define CERT_LIST_MAX (32 * 1024) /* of the peer, before it is proven */
#define DAY_S 86400

#define WITH_SHA256 (TLS_AES_128 | TLS_CHACHA20)
static const char groups[] = "X25519:P-256";

struct loading {
	const struct tls_files *files;
	tls_tell tell;
	void *arg;
	bool failed;
};

bool
tls_is_built(void)
{
	return true;
}

__attribute__((format(printf, 4, 5))) static void
tls_ctx_tell(struct loading *l, bool warning, const char *setting, const char *fmt, ...)
{
	char text[TLS_NAME_MAX + 256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	l->tell(l->arg, warning, setting, text);
	l->failed = l->failed || !warning;
	ERR_clear_error();
}

/* The reason of the last failed call: OpenSSL's, or that of the system call. */
static const char *
last_error(void)
{
	unsigned long first = ERR_peek_error(), e = ERR_SYSTEM_ERROR(first) ? first : ERR_peek_last_error();
	const char *text = ERR_SYSTEM_ERROR(e) ? strerror(ERR_GET_REASON(e)) : ERR_reason_error_string(e);

	return text != NULL ? text : "it is not a PEM file";
}

/* An encrypted key is an error; OpenSSL's own function asks at the terminal. */
static int
no_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return -1;
}

static void
look_at_expiry(struct loading *l, X509 *cert)
{
	const ASN1_TIME *end = X509_get0_notAfter(cert);
	int days = 0, secs = 0;
	char name[TLS_NAME_MAX];

	(void)tls_who_name(cert, name);
	if (ASN1_TIME_diff(&days, &secs, NULL, end) != 1)
		return;
	if (days < 0 || secs < 0)
		tls_ctx_tell(l, false, "cert", "has the certificate of \"%s\", which has expired", name);
	else if (days < TLS_EXPIRES_SOON_DAYS)
		tls_ctx_tell(l, true, "cert", "has the certificate of \"%s\", which expires in %d days", name, days);
	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		tls_ctx_tell(l, false, "cert", "has the certificate of \"%s\", which is not valid yet", name);
}

static void
look_at_cert(struct loading *l, SSL_CTX *ctx, bool client)
{
	X509 *cert = SSL_CTX_get0_certificate(ctx);
	EVP_PKEY *key = X509_get0_pubkey(cert);

	if (X509_check_purpose(cert, client ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER, 0) != 1)
		tls_ctx_tell(l, false, "cert",
		    client ? "is a certificate without clientAuth, which an ingress needs"
		           : "is a certificate without serverAuth, which an egress needs");
	look_at_expiry(l, cert);
	if (key != NULL && EVP_PKEY_is_a(key, "RSA") && EVP_PKEY_get_bits(key) > RSA_BITS_SLOW)
		tls_ctx_tell(l, true, "cert",
		    "has an RSA key of %d bits: each handshake stops a worker for milliseconds",
		    EVP_PKEY_get_bits(key));
}

static void
load_crl(struct loading *l, SSL_CTX *ctx)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	if (lookup == NULL || X509_load_crl_file(lookup, l->files->crl, X509_FILETYPE_PEM) < 1)
		tls_ctx_tell(l, false, "crl", "%s cannot be used: %s", l->files->crl, last_error());
	else
		(void)X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
}

static void
load_private_key(struct loading *l, SSL_CTX *ctx, bool client)
{
	const char *path = l->files->key;
	struct stat st;

	if (SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) != 1)
		tls_ctx_tell(l, false, "key", "%s cannot be used: %s", path, last_error());
	else if (stat(path, &st) == 0 && (st.st_mode & TLS_OF_OTHERS) != 0)
		tls_ctx_tell(l, false, "key", "%s %s", path, tls_of_others);
	else
		look_at_cert(l, ctx, client);
}

/* Peers with the same CA and CRL refuse what these do not verify. Others may have another CA. */
static void
look_at_chain(struct loading *l, SSL_CTX *ctx)
{
	X509_STORE_CTX *v = X509_STORE_CTX_new();
	STACK_OF(X509) *chain = NULL;

	(void)SSL_CTX_get0_chain_certs(ctx, &chain);
	if (v != NULL &&
	    X509_STORE_CTX_init(v, SSL_CTX_get_cert_store(ctx), SSL_CTX_get0_certificate(ctx), chain) == 1 &&
	    X509_verify_cert(v) != 1)
		tls_ctx_tell(l, true, "cert", "is not verified by tls.ca (%s), so peers with the same tls.ca refuse it",
		    X509_verify_cert_error_string(X509_STORE_CTX_get_error(v)));
	X509_STORE_CTX_free(v);
}

static void
load_certificates(struct loading *l, SSL_CTX *ctx, bool client)
{
	const struct tls_files *f = l->files;

	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
		tls_ctx_tell(l, false, "cert", "%s cannot be used: %s", f->cert, last_error());
	else
		load_private_key(l, ctx, client);
	if (SSL_CTX_load_verify_file(ctx, f->ca) != 1)
		tls_ctx_tell(l, false, "ca", "%s cannot be used: %s", f->ca, last_error());
	else if (f->crl[0] != '\0')
		load_crl(l, ctx);
	if (!l->failed)
		look_at_chain(l, ctx);
}

static bool
set_suites(SSL_CTX *ctx, unsigned suites)
{
	static const unsigned codes[] = { 0x1301, 0x1303, 0x1302 }; /* by their bits */
	char list[128];
	size_t len = 0;

	for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (((suites != 0 ? suites : WITH_SHA256) & 1u << i) != 0)
			len += (size_t)snprintf(
			    list + len, sizeof(list) - len, "%s%s", len > 0 ? ":" : "", tls_suite_name(codes[i]));
	return SSL_CTX_set_ciphersuites(ctx, list) == 1;
}

/* Not OpenSSL's configuration file: all choices are made here. Nor its secure heap: a fixed one bounds the streams, each
 * of which has a key there, and OpenSSL takes no other memory when it is full. */
SSL_CTX *
tls_ctx_new(bool client, unsigned suites)
{
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	SSL_CTX *ctx = SSL_CTX_new(client ? TLS_client_method() : TLS_server_method());

	if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 || !set_suites(ctx, suites) ||
	    SSL_CTX_set1_groups_list(ctx, groups) != 1 || SSL_CTX_set_num_tickets(ctx, 0) != 1 ||
	    SSL_CTX_set_alpn_protos(ctx, tls_alpn, sizeof(tls_alpn)) != 0) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx,
	    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS |
	        SSL_MODE_NO_AUTO_CHAIN);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_cert_list(ctx, CERT_LIST_MAX);
	SSL_CTX_set_read_ahead(ctx, 1);
	/* A server that verifies its clients takes only a session, or PSK, with a context. */
	(void)SSL_CTX_set_session_id_context(ctx, tls_context, sizeof(tls_context));
	SSL_CTX_set_msg_callback(ctx, tls_io_message);
	SSL_CTX_set_alpn_select_cb(ctx, tls_io_alpn, NULL);
	/* With PSKs alone, the handshake fails without one of ours: no certificate verifies. */
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, tls_io_verify);
	return ctx;
}

static SSL_CTX *
load_ctx(struct loading *l, bool client, bool psk)
{
	SSL_CTX *ctx = tls_ctx_new(client, l->files->suites);

	if (ctx == NULL)
		tls_ctx_tell(l, false, psk ? "psk" : "cert", "cannot be used: %s", last_error());
	else if (psk)
		tls_psk_use(ctx, client);
	else {
		load_certificates(l, ctx, client);
		tls_assoc_use(ctx, client);
	}
	return ctx;
}

/* -- scopes -- */

time_t
tls_earlier(time_t until, const ASN1_TIME *t)
{
	struct tm tm;
	time_t at;

	if (t == NULL || ASN1_TIME_to_tm(t, &tm) != 1 || (at = timegm(&tm)) > until)
		return until;
	return at;
}

/* Of our suites, certificate, and of CAs and CRLs; or of all PSKs. So a reload of equal files changes nothing. */
static bool
digest_rules(struct tls_ctx *ctx, unsigned suites)
{
	SSL_CTX *ssl_ctx = ctx->client != NULL ? ctx->client : ctx->server;
	X509 *own = ssl_ctx != NULL ? SSL_CTX_get0_certificate(ssl_ctx) : NULL;
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	bool ok = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
	    EVP_DigestUpdate(md, ctx->name, sizeof(ctx->name)) == 1 &&
	    EVP_DigestUpdate(md, &suites, sizeof(suites)) == 1 &&
	    EVP_DigestUpdate(md, ctx->psks, ctx->psk_cnt * sizeof(*ctx->psks)) == 1;
	STACK_OF(X509_OBJECT) *trusted = own != NULL ? X509_STORE_get0_objects(SSL_CTX_get_cert_store(ssl_ctx)) : NULL;
	uint8_t one[32];

	if (ok && own != NULL)
		ok = X509_digest(own, EVP_sha256(), one, NULL) == 1 && EVP_DigestUpdate(md, one, sizeof(one)) == 1;
	ctx->until = tls_earlier(INT64_MAX, own != NULL ? X509_get0_notAfter(own) : NULL);
	for (int i = 0; ok && i < sk_X509_OBJECT_num(trusted); i++) {
		const X509_OBJECT *o = sk_X509_OBJECT_value(trusted, i);

		if (X509_OBJECT_get_type(o) == X509_LU_CRL)
			ctx->until = tls_earlier(ctx->until, X509_CRL_get0_nextUpdate(X509_OBJECT_get0_X509_CRL(o)));
		ok = (X509_OBJECT_get_type(o) == X509_LU_CRL
		             ? X509_CRL_digest(X509_OBJECT_get0_X509_CRL(o), EVP_sha256(), one, NULL)
		             : X509_digest(X509_OBJECT_get0_X509(o), EVP_sha256(), one, NULL)) == 1 &&
		    EVP_DigestUpdate(md, one, sizeof(one)) == 1;
	}
	ok = ok && EVP_DigestFinal_ex(md, ctx->digest, NULL) == 1;
	EVP_MD_CTX_free(md);
	return ok;
}

void
tls_scope(const struct tls_ctx *ctx, unsigned level, const char *names, const char *host, uint8_t out[TLS_SCOPE_LEN])
{
	static const char label[] = "smcrd scope v1"; /* with its NUL */
	uint8_t text[sizeof(label) + sizeof(ctx->digest) + 1 + TLS_NAMES_MAX + TLS_NAME_MAX] = { 0 }, digest[32];
	uint8_t *p = text + sizeof(label);

	memcpy(text, label, sizeof(label));
	memcpy(p, ctx->digest, sizeof(ctx->digest));
	p += sizeof(ctx->digest);
	*p++ = (uint8_t)level;
	(void)snprintf((char *)p, TLS_NAMES_MAX, "%s", names);
	/* It counts only without names. */
	if (names[0] == '\0')
		(void)snprintf((char *)p + TLS_NAMES_MAX, TLS_NAME_MAX, "%s", host);
	(void)SHA256(text, sizeof(text), digest);
	memcpy(out, digest, TLS_SCOPE_LEN);
}

void
tls_io_scope(const struct tls_io *io, unsigned level, uint8_t out[TLS_SCOPE_LEN])
{
	tls_scope(io->ctx, level, io->names, io->host, out);
}

/* -- contexts -- */

struct tls_ctx *
tls_ctx_load(const struct tls_files *files, unsigned uses, tls_tell tell, void *arg)
{
	struct loading l = { .files = files, .tell = tell, .arg = arg };
	struct tls_ctx *ctx = calloc(1, sizeof(*ctx));
	bool psk = files->psk[0] != '\0';

	if (ctx == NULL) {
		tls_ctx_tell(&l, false, psk ? "psk" : "cert", "cannot be used: out of memory");
		return NULL;
	}
	ctx->refs = 1;
	tls_files_look(files, &ctx->stamp);
	ctx->resume_s = files->resume_s;
	(void)snprintf(ctx->name, sizeof(ctx->name), "%s", files->name);
	if (psk && !tls_psk_load(ctx, files->psk, tell, arg))
		l.failed = true;
	if (!l.failed && (uses & TLS_AS_CLIENT) != 0)
		ctx->client = load_ctx(&l, true, psk);
	if (!l.failed && (uses & TLS_AS_SERVER) != 0)
		ctx->server = load_ctx(&l, false, psk);
	if (!l.failed && !digest_rules(ctx, files->suites))
		tls_ctx_tell(&l, false, psk ? "psk" : "cert", "cannot be used: %s", last_error());
	if (!l.failed)
		return ctx;
	tls_ctx_put(ctx);
	return NULL;
}

int64_t
tls_ctx_not_after(const struct tls_ctx *ctx)
{
	SSL_CTX *any = ctx->client != NULL ? ctx->client : ctx->server;
	const X509 *cert = any != NULL ? SSL_CTX_get0_certificate(any) : NULL;
	struct tm tm;

	return cert != NULL && ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

const struct tls_stamp *
tls_ctx_stamp(const struct tls_ctx *ctx)
{
	return &ctx->stamp;
}

struct tls_ctx *
tls_ctx_get(struct tls_ctx *ctx)
{
	if (ctx != NULL)
		atomic_fetch_add(&ctx->refs, 1);
	return ctx;
}

void
tls_ctx_put(struct tls_ctx *ctx)
{
	if (ctx == NULL || atomic_fetch_sub(&ctx->refs, 1) > 1)
		return;
	SSL_CTX_free(ctx->client);
	SSL_CTX_free(ctx->server);
	tls_psk_free(ctx);
	free(ctx);
}
