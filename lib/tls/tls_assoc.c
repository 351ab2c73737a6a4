/* Associations: a later handshake with a peer that has proven its name by certificates needs none; see tls.h. Both ends
 * derive them from the first handshake (RFC 8446 7.5), and use them as an external PSK with (EC)DHE:
 *
 *     PSK      = exporter "EXPORTER-smcrd-assoc-v1", no context, 32
 *     identity = "smcrd-A1" || exporter "EXPORTER-smcrd-assoc-id-v1", no context, 16
 *
 * The TLS server of the first handshake only accepts it, its client only offers it: a reflected ClientHello fails (RFC 9257
 * 4.1). It lives as long as `resume`, both certificates, and the CRLs; by other keys, CAs or CRLs it is not found. */
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <pthread.h>
#include <string.h>

#include "tls/tls_int.h"

#define ID_LEN 16
#define PER_NAME 16 /* of a role */

struct assoc {
	struct tls_proof *proof; /* of the peer, counted; NULL: free */
	bool client;             /* our role */
	uint16_t suite;          /* of that handshake */
	time_t born, until;
	uint64_t nr; /* in the order of their making */
	uint8_t id[ID_LEN], key[TLS_KEY_LEN], digest[32];
	char peer[TLS_PEER_MAX]; /* client: the address */
};

/* Of all threads and contexts. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct assoc *all; /* TLS_ASSOCS_MAX */
static uint64_t made;

time_t (*tls_clock)(time_t *) = time;

static const char identity_eye[8] = { 's', 'm', 'c', 'r', 'd', '-', 'A', '1' };

static void
drop(struct assoc *a)
{
	struct tls_proof *proof = a->proof;

	OPENSSL_cleanse(a, sizeof(*a));
	tls_proof_put(proof);
}

static bool
is_valid(const struct assoc *a, time_t now)
{
	return a->proof != NULL && now >= a->born && now < a->until;
}

/* A free place: of one that has ended, else of the oldest of this name if it has many, else of the oldest. */
static struct assoc *
place_for(const struct tls_who *name, bool client, time_t now)
{
	struct assoc *oldest = NULL, *same = NULL, *empty = NULL;
	unsigned cnt = 0;

	for (struct assoc *a = all; a < all + TLS_ASSOCS_MAX; a++) {
		if (a->proof != NULL && !is_valid(a, now))
			drop(a);
		if (a->proof == NULL) {
			empty = empty != NULL ? empty : a;
			continue;
		}
		oldest = oldest == NULL || a->nr < oldest->nr ? a : oldest;
		if (a->client != client || memcmp(tls_proof_who(a->proof)->id, name->id, sizeof(name->id)) != 0)
			continue;
		cnt++;
		same = same == NULL || a->nr < same->nr ? a : same;
	}
	struct assoc *at = cnt >= PER_NAME ? same : empty != NULL ? empty : oldest;
	if (at->proof != NULL)
		drop(at);
	return at;
}

static bool
export_of(struct tls_io *io, const char *label, uint8_t *out, size_t len)
{
	return SSL_export_keying_material(io->ssl, out, len, label, strlen(label), NULL, 0, 0) == 1;
}

static time_t
end_of_chain(const struct tls_io *io)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(io->ssl);
	time_t until = io->ctx->until;

	for (int i = 0; i < sk_X509_num(chain); i++)
		until = tls_earlier(until, X509_get0_notAfter(sk_X509_value(chain, i)));
	return until;
}

void
tls_assoc_keep(struct tls_io *io)
{
	const time_t now = tls_clock(NULL);
	struct assoc new = { .client = io->client, .born = now, .until = end_of_chain(io), .proof = io->proof };

	const bool keeps = io->keeps && io->ctx->resume_s > 0 && (!io->client || io->at[0] != '\0');

	io->keeps = false;
	if (!keeps)
		return;
	if (new.until > now + (time_t)io->ctx->resume_s)
		new.until = now + (time_t)io->ctx->resume_s;
	if (!export_of(io, "EXPORTER-smcrd-assoc-v1", new.key, sizeof(new.key)) ||
	    !export_of(io, "EXPORTER-smcrd-assoc-id-v1", new.id, sizeof(new.id))) {
		ERR_clear_error();
		return;
	}
	new.suite = (uint16_t)tls_io_suite(io);
	memcpy(new.digest, io->ctx->digest, sizeof(new.digest));
	memcpy(new.peer, io->at, sizeof(new.peer));
	(void)pthread_mutex_lock(&lock);
	if (all == NULL)
		all = tls_keys_map(TLS_ASSOCS_MAX * sizeof(*all));
	struct assoc *at = all != NULL ? place_for(&io->peer, io->client, now) : NULL;
	if (at != NULL) {
		new.nr = ++made;
		*at = new;
		(void)tls_proof_get(io->proof);
	}
	(void)pthread_mutex_unlock(&lock);
	OPENSSL_cleanse(&new, sizeof(new));
}

/* Ours, by these rules: of a client the newest with this address, of a server that with this identity. The stream gets a
 * copy of the key. */
static bool
take_assoc(struct tls_io *io, const uint8_t *id)
{
	const time_t now = tls_clock(NULL);
	struct assoc *best = NULL;

	tls_assoc_forget(io);
	(void)pthread_mutex_lock(&lock);
	for (struct assoc *a = all; a != NULL && a < all + TLS_ASSOCS_MAX; a++)
		if (is_valid(a, now) && a->client == io->client &&
		    (io->client ? strcmp(a->peer, io->at) == 0 : CRYPTO_memcmp(a->id, id, ID_LEN) == 0) &&
		    memcmp(a->digest, io->ctx->digest, sizeof(a->digest)) == 0 && (best == NULL || a->nr > best->nr) &&
		    tls_proof_permitted(a->proof, io->names, io->host))
			best = a;
	if (best != NULL) {
		io->assoc.proof = tls_proof_get(best->proof);
		io->assoc.psk.len = TLS_KEY_LEN;
		io->assoc.psk.suite = best->suite;
		memcpy(io->assoc.psk.key, best->key, TLS_KEY_LEN);
		memcpy(io->identity, identity_eye, sizeof(identity_eye));
		memcpy(io->identity + sizeof(identity_eye), best->id, ID_LEN);
	}
	(void)pthread_mutex_unlock(&lock);
	return best != NULL;
}

void
tls_assoc_forget(struct tls_io *io)
{
	tls_proof_put(io->assoc.proof);
	OPENSSL_cleanse(&io->assoc, sizeof(io->assoc));
}

void
tls_io_resume(struct tls_io *io, const char *at)
{
	if (!io->client || io->ctx->psk_cnt > 0 || io->ctx->resume_s == 0)
		return;
	(void)snprintf(io->at, sizeof(io->at), "%s", at);
	(void)take_assoc(io, NULL);
}

/* -- callbacks -- */

static int
use_assoc(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
	struct tls_io *io = tls_io_of(ssl);

	*out = NULL;
	*id_len = 0;
	if (io->assoc.proof == NULL || !tls_psk_fits(&io->assoc.psk, md))
		return 1;
	*out = tls_psk_session(ssl, &io->assoc.psk);
	*id = (const unsigned char *)io->identity;
	*id_len = sizeof(identity_eye) + ID_LEN;
	return *out != NULL;
}

/* Not found: a full handshake. */
static int
find_assoc(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **out)
{
	struct tls_io *io = tls_io_of(ssl);

	*out = NULL;
	if (id_len != sizeof(identity_eye) + ID_LEN || memcmp(id, identity_eye, sizeof(identity_eye)) != 0 ||
	    io->ctx->resume_s == 0 || !take_assoc(io, id + sizeof(identity_eye)))
		return 1;
	*out = tls_psk_session(ssl, &io->assoc.psk);
	return *out != NULL;
}

void
tls_assoc_use(SSL_CTX *ctx, bool client)
{
	if (client)
		SSL_CTX_set_psk_use_session_callback(ctx, use_assoc);
	else
		SSL_CTX_set_psk_find_session_callback(ctx, find_assoc);
}
