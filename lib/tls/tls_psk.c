/* Configured PSKs: their file, and the callbacks of both roles. The identity in a ClientHello is CLIENT>SERVER, or
 * CLIENT>SERVER@TAG of a key with a tag: a PSK has one direction per identity, and a reflected ClientHello fails (RFC 9257
 * 4.1, Selfie). Of several keys of a peer, the first is offered and each accepted, so that both hosts can change to a new one. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tls/tls_int.h"

#define FILE_MAX (32 * 1024)

static bool
is_word(const char *s, size_t len, size_t max)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && (s[i] == '\0' || strchr("._-", s[i]) == NULL))
			return false;
	return len > 0 && len <= max;
}

static bool
is_psk_name(const char *s, size_t len)
{
	return is_word(s, len, TLS_PSK_NAME_MAX) && strncmp(s, "smcrd-", 6) != 0;
}

static bool
read_hex(struct tls_psk *p, const char *s, size_t len)
{
	if (len % 2 != 0 || len < 2 * TLS_PSK_MIN || len > 2 * TLS_PSK_MAX)
		return false;
	p->len = (uint8_t)(len / 2);
	for (size_t i = 0; i < len; i++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, tolower((unsigned char)s[i]));

		if (at == NULL || *at == '\0')
			return false;
		p->key[i / 2] = (uint8_t)(p->key[i / 2] << 4 | (at - digits));
	}
	return true;
}

/* One line, PEER-NAME:HEX: NULL or the error. */
static const char *
psk_take_line(struct tls_ctx *ctx, const char *line, size_t len)
{
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		len--;
	const char *colon = memchr(line, ':', len);
	const size_t before = colon != NULL ? (size_t)(colon - line) : 0;
	const char *at = memchr(line, '@', before);
	const size_t name_len = at != NULL ? (size_t)(at - line) : before;
	const size_t tag_len = at != NULL ? before - name_len - 1 : 0;
	struct tls_psk *p = &ctx->psks[ctx->psk_cnt];

	if (len == 0 || line[0] == '#')
		return NULL;
	if (ctx->psk_cnt == ctx->psk_room)
		return "has too many lines";
	if (!is_psk_name(line, name_len))
		return "has a line that does not begin with PEER-NAME: 1 to 60 letters, digits, '.', '_' and '-', not \"smcrd-\"";
	if (at != NULL && !is_word(at + 1, tag_len, TLS_PSK_TAG_MAX))
		return "has a tag behind '@' that is not 1 to 15 letters, digits, '.', '_' and '-'";
	memset(p->tag, 0, sizeof(p->tag));
	memcpy(p->tag, at != NULL ? at + 1 : "", tag_len);
	if (tls_psk_find(ctx, line, name_len, p->tag) != NULL)
		return "has a name twice: its keys need NAME@TAG";
	if (!read_hex(p, colon + 1, len - before - 1))
		return "has a key that is not 32 to 64 bytes in hexadecimal digits";
	memcpy(p->peer, line, name_len);
	ctx->psk_cnt++;
	return NULL;
}

void *
tls_keys_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, size, MADV_DONTDUMP);
	(void)mlock(p, size);
	return p;
}

static void
keys_unmap(void *p, size_t size)
{
	if (p == NULL)
		return;
	OPENSSL_cleanse(p, size);
	(void)munmap(p, size);
}

static const char *
take_file(struct tls_ctx *ctx, const char *text, size_t len)
{
	const char *why = NULL;

	ctx->psk_room = 1;
	for (size_t i = 0; i < len && ctx->psk_room < TLS_PSKS_MAX; i++)
		ctx->psk_room += text[i] == '\n';
	ctx->psks = tls_keys_map(ctx->psk_room * sizeof(*ctx->psks));
	if (ctx->psks == NULL)
		return "cannot be read: out of memory";
	for (const char *line = text, *end; why == NULL && line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		end = end != NULL ? end : text + len;
		why = psk_take_line(ctx, line, (size_t)(end - line));
	}
	return why != NULL || ctx->psk_cnt > 0 ? why : "has no line PEER-NAME:HEX";
}

bool
tls_psk_load(struct tls_ctx *ctx, const char *path, tls_tell tell, void *arg)
{
	char *text = tls_keys_map(FILE_MAX), words[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why = NULL;
	struct stat st;
	ssize_t len = 0;

	if (text == NULL)
		why = "cannot be read: out of memory";
	else if (fd < 0 || fstat(fd, &st) != 0 || (len = read(fd, text, FILE_MAX)) < 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "is not a file";
	else if ((st.st_mode & TLS_OF_OTHERS) != 0)
		why = tls_of_others;
	else if (len == FILE_MAX)
		why = "is longer than 32 KiB";
	else
		why = take_file(ctx, text, (size_t)len);
	if (fd >= 0)
		close(fd);
	keys_unmap(text, FILE_MAX);
	if (why == NULL)
		return true;
	(void)snprintf(words, sizeof(words), "%s: %s", path, why);
	tell(arg, false, "psk", words);
	return false;
}

void
tls_psk_free(struct tls_ctx *ctx)
{
	keys_unmap(ctx->psks, ctx->psk_room * sizeof(*ctx->psks));
}

const struct tls_psk *
tls_psk_find(const struct tls_ctx *ctx, const char *peer, size_t len, const char *tag)
{
	for (const struct tls_psk *p = ctx->psks; p < ctx->psks + ctx->psk_cnt; p++)
		if (strlen(p->peer) == len && memcmp(p->peer, peer, len) == 0 &&
		    (tag == NULL || strcmp(p->tag, tag) == 0))
			return p;
	return NULL;
}

bool
tls_psk_has(const struct tls_ctx *ctx, const char *peer, const uint8_t digest[32])
{
	uint8_t its[32];

	for (const struct tls_psk *p = ctx->psks; p < ctx->psks + ctx->psk_cnt; p++)
		if (strcmp(p->peer, peer) == 0 && memcmp(SHA256(p->key, p->len, its), digest, sizeof(its)) == 0)
			return true;
	return false;
}

SSL_SESSION *
tls_psk_session(SSL *ssl, const struct tls_psk *p)
{
	const unsigned code = p->suite != 0 ? p->suite : SUITE_SHA256;
	const uint8_t suite[] = { (uint8_t)(code >> 8), (uint8_t)code };
	SSL_SESSION *s = SSL_SESSION_new();
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite);

	if (s != NULL && cipher != NULL && SSL_SESSION_set1_master_key(s, p->key, p->len) == 1 &&
	    SSL_SESSION_set_cipher(s, cipher) == 1 && SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1 &&
	    SSL_SESSION_set1_id_context(s, tls_context, sizeof(tls_context)) == 1)
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

bool
tls_psk_fits(const struct tls_psk *p, const EVP_MD *md)
{
	return md == NULL || EVP_MD_get_type(md) == (p->suite == SUITE_SHA384 ? NID_sha384 : NID_sha256);
}

/* Client: our PSK for this peer. OpenSSL does not copy the identity. */
static int
use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
	struct tls_io *io = tls_io_of(ssl);

	*out = NULL;
	*id_len = 0;
	if (io->psk == NULL || !tls_psk_fits(io->psk, md))
		return 1;
	(void)snprintf(io->identity, sizeof(io->identity), "%s>%s%s%s", io->ctx->name, io->psk->peer,
	    io->psk->tag[0] != '\0' ? "@" : "", io->psk->tag);
	*out = tls_psk_session(ssl, io->psk);
	*id = (const unsigned char *)io->identity;
	*id_len = strlen(io->identity);
	return *out != NULL;
}

/* Server: CLIENT>SERVER or CLIENT>SERVER@TAG, and we are SERVER. Without a PSK the handshake goes on, and fails for lack of
 * a certificate. */
static int
find_session(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **out)
{
	struct tls_io *io = tls_io_of(ssl);
	const size_t own = strlen(io->ctx->name);
	char text[sizeof(io->identity)] = "";

	*out = NULL;
	io->psk_unknown = true;
	if (id_len >= sizeof(text) || memchr(id, '\0', id_len) != NULL)
		return 1;
	memcpy(text, id, id_len);
	const char *sep = strchr(text, '>'), *end = sep != NULL ? sep + 1 + strcspn(sep + 1, "@") : NULL;
	if (sep == NULL || strcmp(end, "@") == 0 || (size_t)(end - sep - 1) != own ||
	    memcmp(sep + 1, io->ctx->name, own) != 0)
		return 1;
	io->psk = tls_psk_find(io->ctx, text, (size_t)(sep - text), *end == '@' ? end + 1 : end);
	if (io->psk == NULL || strcmp(io->psk->peer, io->ctx->name) == 0)
		return 1;
	io->psk_unknown = false;
	*out = tls_psk_session(ssl, io->psk);
	return *out != NULL;
}

void
tls_psk_use(SSL_CTX *ctx, bool client)
{
	if (client)
		SSL_CTX_set_psk_use_session_callback(ctx, use_session);
	else
		SSL_CTX_set_psk_find_session_callback(ctx, find_session);
}
