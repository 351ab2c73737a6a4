/* What a peer has proven, shared by all of its connections, so that later rules can judge it again; see tls.h. */
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "tls/tls_int.h"

struct tls_proof {
	struct list_node node;
	unsigned refs;      /* under the lock */
	uint8_t digest[32]; /* of the certificate, or of a PSK */
	struct tls_who peer;
	X509 *cert; /* NULL: a PSK */
	STACK_OF(X509) *
	    chain; /* of the certificate, as verified, without the root: that has to be in `ca` each time */
};

/* Of all threads and contexts: a connection outlives the context of its handshake. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_node proofs = { &proofs, &proofs };

static void
proof_free(struct tls_proof *p)
{
	X509_free(p->cert);
	sk_X509_pop_free(p->chain, X509_free);
	free(p);
}

static struct tls_proof *
proof_make(struct tls_io *io)
{
	struct tls_proof *p = calloc(1, sizeof(*p));
	unsigned len = sizeof(p->digest);

	if (p == NULL)
		return NULL;
	list_init(&p->node);
	p->refs = 1;
	p->peer = io->peer;
	if (io->psk != NULL) {
		(void)SHA256(io->psk->key, io->psk->len, p->digest);
		return p;
	}
	p->cert = SSL_get1_peer_certificate(io->ssl);
	p->chain = X509_chain_up_ref(SSL_get0_verified_chain(io->ssl));
	while (
	    sk_X509_num(p->chain) > 1 && X509_self_signed(sk_X509_value(p->chain, sk_X509_num(p->chain) - 1), 0) == 1)
		X509_free(sk_X509_pop(p->chain));
	if (p->cert != NULL && p->chain != NULL && X509_digest(p->cert, EVP_sha256(), p->digest, &len) == 1)
		return p;
	proof_free(p);
	return NULL;
}

static bool
proof_same(const struct tls_proof *a, const struct tls_proof *b)
{
	return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0 &&
	    memcmp(a->peer.id, b->peer.id, sizeof(a->peer.id)) == 0;
}

struct tls_proof *
tls_proof_new(struct tls_io *io)
{
	struct tls_proof *p = proof_make(io);

	if (p == NULL)
		return NULL;
	(void)pthread_mutex_lock(&lock);
	struct tls_proof *known = LIST_FIND(struct tls_proof, q, &proofs, node, proof_same(p, q));
	if (known != NULL)
		known->refs++;
	else
		list_push(&proofs, &p->node);
	(void)pthread_mutex_unlock(&lock);
	if (known == NULL)
		return p;
	proof_free(p);
	return known;
}

struct tls_proof *
tls_proof_get(struct tls_proof *p)
{
	if (p == NULL)
		return NULL;
	(void)pthread_mutex_lock(&lock);
	p->refs++;
	(void)pthread_mutex_unlock(&lock);
	return p;
}

void
tls_proof_put(struct tls_proof *p)
{
	if (p == NULL)
		return;
	(void)pthread_mutex_lock(&lock);
	bool last = --p->refs == 0;
	if (last)
		list_remove(&p->node);
	(void)pthread_mutex_unlock(&lock);
	if (last)
		proof_free(p);
}

const struct tls_who *
tls_proof_who(const struct tls_proof *p)
{
	return &p->peer;
}

/* -- judged again -- */

static int
ignore_missing_crl(int ok, X509_STORE_CTX *store)
{
	return ok || X509_STORE_CTX_get_error(store) == X509_V_ERR_UNABLE_TO_GET_CRL;
}

/* By CAs and CRLs of now. Neither the end of a certificate nor that of a CRL ends what runs, nor a CRL that is missing. */
static bool
cert_holds(const struct tls_proof *p, SSL_CTX *ctx, bool client, char why[TLS_WHY_MAX])
{
	X509_STORE_CTX *store = X509_STORE_CTX_new();
	int rc = -1;

	if (store != NULL && X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(ctx), p->cert, p->chain) == 1 &&
	    X509_STORE_CTX_set_default(store, client ? "ssl_server" : "ssl_client") == 1) {
		X509_STORE_CTX_set_flags(store, X509_V_FLAG_NO_CHECK_TIME);
		X509_STORE_CTX_set_verify_cb(store, ignore_missing_crl);
		rc = X509_verify_cert(store);
	}
	if (rc != 1)
		(void)snprintf(why, TLS_WHY_MAX, "certificate of '%s': %s", p->peer.name,
		    rc == 0 ? X509_verify_cert_error_string(X509_STORE_CTX_get_error(store)) : "out of memory");
	X509_STORE_CTX_free(store);
	return rc == 1;
}

static bool
psk_holds(const struct tls_proof *p, const struct tls_ctx *ctx, char why[TLS_WHY_MAX])
{
	const char *name = p->peer.name + strlen("psk:");

	if (tls_psk_has(ctx, name, p->digest))
		return true;
	(void)snprintf(why, TLS_WHY_MAX,
	    tls_psk_find(ctx, name, strlen(name), NULL) != NULL ? "the key of '%s' has changed"
	                                                        : "'%s' is no longer in the PSK file",
	    p->peer.name);
	return false;
}

bool
tls_proof_holds(const struct tls_proof *p, const struct tls_ctx *ctx, bool client, char why[TLS_WHY_MAX])
{
	const bool psk = p->cert == NULL;
	SSL_CTX *ssl_ctx = client ? ctx->client : ctx->server;

	why[0] = '\0';
	if (ssl_ctx == NULL) /* no service of this kind has TLS now */
		return true;
	if (psk != (ctx->psk_cnt > 0)) {
		(void)snprintf(why, TLS_WHY_MAX, "'%s' has proven itself by a %s, and tls has none now", p->peer.name,
		    psk ? "PSK" : "certificate");
		return false;
	}
	return psk ? psk_holds(p, ctx, why) : cert_holds(p, ssl_ctx, client, why);
}

bool
tls_proof_permitted(const struct tls_proof *p, const char *names, const char *host)
{
	if (p->cert != NULL)
		return tls_who_permitted(p->cert, names, host);
	return tls_names_have(names, "psk", p->peer.name + strlen("psk:"));
}
