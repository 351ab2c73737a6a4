/* A stream of TLS on a socket; see tls.h. OpenSSL reads and writes by a BIO that never blocks and raises no signal. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tls/tls_int.h"

/* RFC 8446 5.5 allows 2^24.5 full records of AES-GCM with one key; OpenSSL 3.0 changes it only on request. */
#define RECORDS_PER_KEY (1u << 23)
/* Of a peer's handshake messages after the handshake: so many, and one more for each so many records of data. OpenSSL takes
 * them in one call until there is data, 17 us each. */
#define MESSAGES_BURST 8
#define RECORDS_PER_MESSAGE 1000

#define FIRST_MESSAGE_MAX (16 * 1024)

/* -- the socket -- */

/* The first message of a client, by the headers of its record and of itself (RFC 8446 5.1, 4): OpenSSL takes memory for
 * the length that it claims, up to 131,396 bytes, before it has come. */
static void
look_at_first(struct tls_io *io)
{
	const uint8_t *b = io->first;
	unsigned long record = (unsigned long)b[3] << 8 | b[4], len = (unsigned long)b[6] << 16 | b[7] << 8 | b[8];

	if (b[0] != SSL3_RT_HANDSHAKE || (record >= 4 && len <= FIRST_MESSAGE_MAX))
		return;
	tls_blame(io, TLS_BROKEN, "peer's first message is too long, or in pieces");
	io->refused = true;
}

static int
bio_read(BIO *bio, char *buf, int len)
{
	struct tls_io *io = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (io->refused)
		return -1;
	ssize_t n = recv(io->fd, buf, (size_t)len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	else if (n < 0)
		io->err = errno;
	io->eof = io->eof || n == 0;
	io->drained = n < len;
	for (ssize_t i = 0; i < n && io->first_len < sizeof(io->first); i++)
		io->first[io->first_len++] = (uint8_t)buf[i];
	if (!io->client && !io->proven && io->first_len == sizeof(io->first))
		look_at_first(io);
	return io->refused ? -1 : (int)n;
}

/* Records of one turn leave together. When there is no room for the next one, the kernel holds none of them back. */
static int
bio_write(BIO *bio, const char *buf, int len)
{
	struct tls_io *io = BIO_get_data(bio);
	ssize_t n = send(io->fd, buf, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL | (io->more ? MSG_MORE : 0));

	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	else if (n < 0)
		io->err = errno;
	return (int)n;
}

static long
bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	const struct tls_io *io = BIO_get_data(bio);

	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH || (cmd == BIO_CTRL_EOF && io->eof);
}

static BIO_METHOD *method;

static void
make_method(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "smcrd");
	if (method == NULL || BIO_meth_set_read(method, bio_read) != 1 || BIO_meth_set_write(method, bio_write) != 1 ||
	    BIO_meth_set_ctrl(method, bio_ctrl) != 1) {
		BIO_meth_free(method);
		method = NULL;
	}
}

static bool
set_bio(struct tls_io *io)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_method);
	BIO *bio = method != NULL ? BIO_new(method) : NULL;
	if (bio == NULL)
		return false;
	BIO_set_data(bio, io);
	BIO_set_init(bio, 1);
	SSL_set_bio(io->ssl, bio, bio);
	return true;
}

/* -- start and end -- */

static bool
is_address(const char *host)
{
	ASN1_OCTET_STRING *ip = a2i_IPADDRESS(host);

	ASN1_OCTET_STRING_free(ip);
	return ip != NULL;
}

/* The first "psk:" of the list. */
static const struct tls_psk *
chosen_psk(const struct tls_ctx *ctx, const char *names)
{
	for (size_t len; *names != '\0'; names += len + (names[len] != '\0')) {
		len = strcspn(names, "\n");
		if (len > 4 && strncmp(names, "psk:", 4) == 0)
			return tls_psk_find(ctx, names + 4, len - 4, NULL);
	}
	return NULL;
}

struct tls_io *
tls_io_make(struct tls_ctx *ctx, bool client, int fd, const struct tls_psk *psk, struct tls_link_end *link)
{
	SSL_CTX *ssl_ctx = client ? ctx->client : ctx->server;
	struct tls_io *io = calloc(1, sizeof(*io));

	ERR_clear_error();
	if (io == NULL || ssl_ctx == NULL || (io->ssl = SSL_new(ssl_ctx)) == NULL) {
		tls_link_free(link);
		free(io);
		return NULL;
	}
	io->ctx = tls_ctx_get(ctx);
	io->fd = fd;
	io->client = client;
	io->psk = psk;
	io->link = link;
	SSL_set_app_data(io->ssl, io);
	if (!set_bio(io)) {
		tls_io_free(io);
		return NULL;
	}
	if (client)
		SSL_set_connect_state(io->ssl);
	else
		SSL_set_accept_state(io->ssl);
	return io;
}

struct tls_io *
tls_io_new(struct tls_ctx *ctx, bool client, int fd, const char *names, const char *host)
{
	bool uses_psk = ctx != NULL && client && ctx->psk_cnt > 0;
	const struct tls_psk *psk = uses_psk ? chosen_psk(ctx, names) : NULL;
	struct tls_io *io = ctx == NULL || (uses_psk && psk == NULL) ? NULL : tls_io_make(ctx, client, fd, psk, NULL);

	if (io == NULL)
		return NULL;
	(void)snprintf(io->names, sizeof(io->names), "%s", names);
	(void)snprintf(io->host, sizeof(io->host), "%s", host);
	if (client && host[0] != '\0' && !is_address(host) && SSL_set_tlsext_host_name(io->ssl, host) != 1) {
		tls_io_free(io);
		return NULL;
	}
	return io;
}

static _Thread_local struct tls_counts counts;

void
tls_io_free(struct tls_io *io)
{
	if (io == NULL)
		return;
	counts.freed++;
	SSL_free(io->ssl);
	tls_link_free(io->link);
	tls_assoc_forget(io);
	tls_proof_put(io->proof);
	tls_ctx_put(io->ctx);
	free(io);
}

const struct tls_counts *
tls_counts(void)
{
	return &counts;
}

void
tls_count(enum tls_failure failure)
{
	counts.failed[failure]++;
}

struct tls_io *
tls_io_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

const char *
tls_io_why(const struct tls_io *io)
{
	return io->why;
}

bool
tls_io_is_silent(const struct tls_io *io)
{
	return io->first_len == 0;
}

const struct tls_who *
tls_io_who(const struct tls_io *io)
{
	return &io->peer;
}

struct tls_proof *
tls_io_proof(const struct tls_io *io)
{
	return io->proof;
}

const struct tls_ctx *
tls_io_ctx(const struct tls_io *io)
{
	return io->ctx;
}

/* -- certificates -- */

int
tls_io_verify(int ok, X509_STORE_CTX *store)
{
	struct tls_io *io = tls_io_of(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
	X509 *cert = X509_STORE_CTX_get_current_cert(store);

	if (!ok) {
		tls_blame_cert(io, store);
		return 0;
	}
	/* The leaf comes last: its chain is verified. */
	if (X509_STORE_CTX_get_error_depth(store) > 0 || tls_who_of_cert(io, cert))
		return 1;
	if (io->names[0] == '\0')
		tls_blame(io, TLS_NAME, "peer is '%s', not '%s', and there are no peer_names", io->peer.name, io->host);
	tls_blame(io, TLS_NAME, "peer is '%s', not one of peer_names", io->peer.name);
	X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

/* -- the handshake -- */

int
tls_io_alpn(
    SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in, unsigned in_len, void *arg)
{
	unsigned char *chosen;

	(void)arg;
	if (SSL_select_next_proto(&chosen, out_len, tls_alpn, sizeof(tls_alpn), in, in_len) != OPENSSL_NPN_NEGOTIATED) {
		tls_blame(tls_io_of(ssl), TLS_NOT_SPOKEN, "the peer is no smcrd: its ALPN lacks smcrd/1");
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

void
tls_io_message(int sent, int version, int type, const void *buf, size_t len, SSL *ssl, void *arg)
{
	struct tls_io *io = tls_io_of(ssl);

	(void)version;
	(void)arg;
	if (sent != 0 || !io->proven)
		return;
	if (type == SSL3_RT_HANDSHAKE && ++io->messages > MESSAGES_BURST) {
		tls_blame(io, TLS_BROKEN, "peer sends too many TLS messages without data");
		io->refused = true;
	}
	if (type == SSL3_RT_INNER_CONTENT_TYPE && len == 1 && *(const uint8_t *)buf == SSL3_RT_APPLICATION_DATA &&
	    io->messages > 0 && ++io->received % RECORDS_PER_MESSAGE == 0)
		io->messages--;
}

static int
tls_io_failed(struct tls_io *io, int what)
{
	io->failed = tls_blame_call(io, what);
	return io->failed;
}

static bool
waits(int what)
{
	return what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE;
}

unsigned
tls_io_suite(const struct tls_io *io)
{
	const SSL_CIPHER *suite = SSL_get_current_cipher(io->ssl);

	return suite != NULL ? SSL_CIPHER_get_protocol_id(suite) : 0;
}

bool
tls_io_is_resumed(const struct tls_io *io)
{
	return io->assoc.proof != NULL && SSL_session_reused(io->ssl) == 1;
}

/* OpenSSL's part has succeeded. */
static int
check_end(struct tls_io *io)
{
	const unsigned char *alpn;
	unsigned len;
	char name[TLS_NAME_MAX];
	bool psk = io->ctx->psk_cnt > 0 || io->link != NULL;

	SSL_get0_alpn_selected(io->ssl, &alpn, &len);
	if (len != tls_alpn[0] || memcmp(alpn, tls_alpn + 1, len) != 0) {
		tls_blame(io, TLS_NOT_SPOKEN, "the peer is no smcrd: its ALPN lacks smcrd/1");
		return -EPROTO;
	}
	if (tls_io_is_resumed(io)) {
		io->peer = *tls_proof_who(io->assoc.proof);
		io->proof = tls_proof_get(io->assoc.proof);
		io->proven = true;
		return 1;
	}
	/* The result of the verification counts for a certificate alone: with a PSK it says nothing. */
	if (psk ? io->psk == NULL || SSL_session_reused(io->ssl) != 1
	        : SSL_session_reused(io->ssl) == 1 || SSL_get0_peer_certificate(io->ssl) == NULL ||
	            SSL_get_verify_result(io->ssl) != X509_V_OK || io->peer.name[0] == '\0') {
		tls_blame(io, TLS_OTHER, "peer has not proven a name");
		return -EPROTO;
	}
	if (io->link != NULL && tls_io_suite(io) != io->psk->suite) {
		tls_blame(io, TLS_SUITE, "peer uses another cipher suite than the link's");
		return -EPROTO;
	}
	if (psk && io->link == NULL) {
		(void)snprintf(name, sizeof(name), "psk:%s", io->psk->peer);
		tls_who_set(&io->peer, "", name);
		if (!tls_names_have(io->names, "psk", io->psk->peer)) {
			tls_blame(io, TLS_NAME, "peer is '%s', not one of peer_names", name);
			return -EPROTO;
		}
	}
	if (io->link == NULL && (io->proof = tls_proof_new(io)) == NULL) {
		tls_blame(io, TLS_OTHER, "out of memory");
		return -ENOMEM;
	}
	io->proven = true;
	io->keeps = !psk;
	if (!io->client)
		tls_assoc_keep(io);
	return 1;
}

int
tls_io_handshake(struct tls_io *io)
{
	if (io->proven || io->failed != 0)
		return io->proven ? 1 : io->failed;
	ERR_clear_error();
	int n = SSL_do_handshake(io->ssl);
	if (n == 1)
		return check_end(io);
	n = SSL_get_error(io->ssl, n);
	return waits(n) ? 0 : tls_io_failed(io, n);
}

/* -- data -- */

ssize_t
tls_io_read(struct tls_io *io, void *buf, size_t len)
{
	size_t got;

	if (io->failed != 0)
		return io->failed;
	ERR_clear_error();
	if (SSL_read_ex(io->ssl, buf, len, &got) == 1) {
		/* A client is through before the server has looked at it: an answer says that it is permitted. */
		if (io->keeps)
			tls_assoc_keep(io);
		return (ssize_t)got;
	}
	int what = SSL_get_error(io->ssl, 0);
	if (what == SSL_ERROR_ZERO_RETURN)
		return 0;
	return waits(what) ? -EAGAIN : tls_io_failed(io, what);
}

ssize_t
tls_io_write(struct tls_io *io, const void *buf, size_t len, bool more)
{
	size_t taken;

	io->more = more;
	if (io->failed != 0)
		return io->failed;
	ERR_clear_error();
	if (SSL_write_ex(io->ssl, buf, len, &taken) != 1) {
		int what = SSL_get_error(io->ssl, 0);

		/* Its data may still be read. */
		return waits(what) ? -EAGAIN : tls_blame_call(io, what);
	}
	io->records += (unsigned)(taken / SSL3_RT_MAX_PLAIN_LENGTH + 1);
	if (io->records >= RECORDS_PER_KEY && SSL_key_update(io->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		io->records = 0;
	return (ssize_t)taken;
}

int
tls_io_finish(struct tls_io *io)
{
	if (!io->proven || io->failed != 0)
		return io->failed;
	ERR_clear_error();
	int n = SSL_shutdown(io->ssl);
	if (n >= 0)
		return 0;
	n = SSL_get_error(io->ssl, n);
	return waits(n) ? -EAGAIN : tls_blame_call(io, n);
}

bool
tls_io_is_drained(const struct tls_io *io)
{
	return io->drained && SSL_has_pending(io->ssl) == 0;
}

bool
tls_io_has_bytes(const struct tls_io *io)
{
	return SSL_has_pending(io->ssl) == 1;
}
