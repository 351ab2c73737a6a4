/* Links in TLS; see tls.h. The key of a link is a PSK out of the secret of its group (RFC 8446 4.2.11, RFC 5869):
 *
 *     group id = HKDF-Expand(secret, "smcrd group id v1", 16)
 *     PSK      = HKDF-Expand(secret, "smcrd link v1" || QPN || PSN, 32), big-endian, of the passive end
 *     identity = "smcrd-L1" || group id || QPN || PSN
 *
 * The identity is readable on the path. The active end only offers it and the passive end only accepts it, so a
 * reflected ClientHello fails (RFC 9257 4.1). PSKs with (EC)DHE: the secret alone opens no recorded data. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tls/tls_int.h"

#define GROUP_ID_LEN 16
#define IDENTITY_LEN 32
#define AT 24 /* of QPN and PSN in it */
#define READ_BUFFER (64 * 1024)
#define ANY_SUITE (TLS_AES_128 | TLS_CHACHA20 | TLS_AES_256)

static const char identity_eye[8] = { 's', 'm', 'c', 'r', 'd', '-', 'L', '1' };

/* Of all links; never freed. No file is read for them. */
static struct tls_ctx links = { .refs = 1 };
static EVP_KDF *hkdf;

/* -- keys -- */

int
tls_io_secret(struct tls_io *io, uint8_t secret[TLS_SECRET_LEN])
{
	static const char label[] = "EXPORTER-smcrd-group-v1";

	ERR_clear_error();
	const unsigned suite = tls_io_suite(io);

	secret[TLS_KEY_LEN] = (uint8_t)(suite >> 8);
	secret[TLS_KEY_LEN + 1] = (uint8_t)suite;
	return io->proven &&
	        SSL_export_keying_material(io->ssl, secret, TLS_KEY_LEN, label, sizeof(label) - 1, NULL, 0, 0) == 1
	    ? 0
	    : -EPROTO;
}

static bool
expand(const uint8_t secret[TLS_SECRET_LEN], const void *info, size_t info_len, uint8_t *out, size_t len)
{
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	EVP_KDF_CTX *ctx = hkdf != NULL ? EVP_KDF_CTX_new(hkdf) : NULL;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){ "SHA256" }, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret, TLS_KEY_LEN),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)info, info_len),
		OSSL_PARAM_construct_end(),
	};
	bool ok = ctx != NULL && EVP_KDF_derive(ctx, out, len, params) == 1;

	EVP_KDF_CTX_free(ctx);
	return ok;
}

/* The PSK of `l`, and the identity of the link. */
static bool
derive(struct tls_link_end *l, const uint8_t secret[TLS_SECRET_LEN], uint8_t identity[IDENTITY_LEN])
{
	static const char id_label[] = "smcrd group id v1", psk_label[] = "smcrd link v1";
	const uint32_t at[2] = { htonl(l->at.qpn), htonl(l->at.psn) };
	uint8_t info[sizeof(psk_label) - 1 + sizeof(at)];

	memcpy(identity, identity_eye, sizeof(identity_eye));
	memcpy(identity + AT, at, sizeof(at));
	memcpy(info, psk_label, sizeof(psk_label) - 1);
	memcpy(info + sizeof(psk_label) - 1, at, sizeof(at));
	l->psk.len = TLS_KEY_LEN;
	l->psk.suite = (uint16_t)(secret[TLS_KEY_LEN] << 8 | secret[TLS_KEY_LEN + 1]);
	if (l->psk.suite == 0)
		l->psk.suite = SUITE_SHA256;
	return expand(secret, id_label, sizeof(id_label) - 1, identity + 8, GROUP_ID_LEN) &&
	    expand(secret, info, sizeof(info), l->psk.key, l->psk.len);
}

/* -- callbacks of both roles -- */

static int
use_link(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
	struct tls_io *io = tls_io_of(ssl);

	*out = NULL;
	*id_len = 0;
	if (!tls_psk_fits(&io->link->psk, md))
		return 1;
	*out = tls_psk_session(ssl, &io->link->psk);
	*id = (const unsigned char *)io->identity;
	*id_len = IDENTITY_LEN;
	return *out != NULL;
}

/* Without a PSK the handshake goes on, and fails for lack of a certificate. */
static int
find_key(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **out)
{
	struct tls_io *io = tls_io_of(ssl);
	struct tls_link_end *l = io->link;
	uint8_t expected[IDENTITY_LEN];
	const uint8_t *secret;
	uint32_t at[2];

	*out = NULL;
	if (id_len != IDENTITY_LEN || memcmp(id, identity_eye, sizeof(identity_eye)) != 0)
		return 1;
	memcpy(at, id + AT, sizeof(at));
	l->at = (struct tls_link){ .qpn = ntohl(at[0]), .psn = ntohl(at[1]) };
	secret = l->find(l->arg, &l->at);
	if (secret == NULL)
		return 1;
	if (!derive(l, secret, expected))
		return 0;
	if (CRYPTO_memcmp(id, expected, sizeof(expected)) != 0)
		return 1;
	io->psk = &l->psk;
	*out = tls_psk_session(ssl, io->psk);
	return *out != NULL;
}

/* -- streams -- */

static void
make_links(void)
{
	hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	links.client = tls_ctx_new(true, ANY_SUITE);
	links.server = tls_ctx_new(false, ANY_SUITE);
	if (links.client != NULL) {
		SSL_CTX_set_default_read_buffer_len(links.client, READ_BUFFER);
		SSL_CTX_set_psk_use_session_callback(links.client, use_link);
	}
	if (links.server != NULL) {
		SSL_CTX_set_default_read_buffer_len(links.server, READ_BUFFER);
		SSL_CTX_set_psk_find_session_callback(links.server, find_key);
	}
}

static struct tls_link_end *
link_end(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_links);
	return calloc(1, sizeof(struct tls_link_end));
}

void
tls_link_free(struct tls_link_end *l)
{
	if (l == NULL)
		return;
	OPENSSL_cleanse(l, sizeof(*l));
	free(l);
}

struct tls_io *
tls_link_dial(int fd, const uint8_t secret[TLS_SECRET_LEN], const struct tls_link *at)
{
	struct tls_link_end *l = link_end();
	uint8_t identity[IDENTITY_LEN];

	if (l == NULL)
		return NULL;
	l->at = *at;
	if (!derive(l, secret, identity)) {
		tls_link_free(l);
		return NULL;
	}
	struct tls_io *io = tls_io_make(&links, true, fd, &l->psk, l);
	if (io == NULL)
		return NULL;
	memcpy(io->identity, identity, sizeof(identity));
	if (SSL_set_ciphersuites(io->ssl, tls_suite_name(l->psk.suite)) == 1)
		return io;
	tls_io_free(io);
	return NULL;
}

struct tls_io *
tls_link_accept(int fd, tls_link_find find, void *arg)
{
	struct tls_link_end *l = link_end();

	if (l == NULL)
		return NULL;
	l->find = find;
	l->arg = arg;
	return tls_io_make(&links, false, fd, NULL, l);
}

const struct tls_link *
tls_link_proven(const struct tls_io *io)
{
	return &io->link->at;
}
