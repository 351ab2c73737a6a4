/*
 * Whatever stands before a proven name: files of PSKs, lists of permitted names, names of certificates, and the first bytes of a peer
 * of each kind of stream. The first byte of the input is the part.
 */
#include <ctype.h>
#include <fcntl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "tls/tls_int.h"

/* Most of them begin a handshake, 0.2 ms each. */
unsigned
fuzz_mutations(void)
{
	return 3000;
}

/* -- files of PSKs -- */

static void
count_tells(void *arg, bool warning, const char *setting, const char *text)
{
	FUZZ_CHECK(!warning && setting[0] != '\0' && text[0] != '\0');
	++*(unsigned *)arg;
}

static struct tls_ctx *
load(const uint8_t *data, size_t len, unsigned *tells)
{
	int fd = memfd_create("psk", MFD_CLOEXEC);
	char path[32];

	FUZZ_CHECK(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, data, len) == (ssize_t)len);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const struct tls_files files = { "", "", "", "", "gw-b", path, 3600, 0 };
	struct tls_ctx *ctx = tls_ctx_load(&files, TLS_AS_CLIENT | TLS_AS_SERVER, count_tells, tells);
	close(fd);
	return ctx;
}

static bool
line_has(const uint8_t *data, size_t len, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i + n < len; i++)
		if ((i == 0 || data[i - 1] == '\n') && memcmp(data + i, name, n) == 0 &&
		    (data[i + n] == ':' || data[i + n] == '@'))
			return true;
	return false;
}

/* One error, or PSKs of the file, with names that stand in no identity for something else. */
static void
psk_file(const uint8_t *data, size_t len)
{
	unsigned tells = 0;
	struct tls_ctx *ctx = load(data, len, &tells);

	FUZZ_CHECK((ctx == NULL) == (tells == 1) && tells <= 1);
	for (unsigned i = 0; ctx != NULL && i < ctx->psk_cnt; i++) {
		const struct tls_psk *p = &ctx->psks[i];

		FUZZ_CHECK(p->len >= TLS_PSK_MIN && p->len <= TLS_PSK_MAX);
		FUZZ_CHECK(p->peer[0] != '\0' && strchr(p->peer, '>') == NULL && strncmp(p->peer, "smcrd-", 6) != 0);
		FUZZ_CHECK(line_has(data, len, p->peer));
		FUZZ_CHECK(strpbrk(p->tag, ">@:") == NULL);
		FUZZ_CHECK(tls_psk_find(ctx, p->peer, strlen(p->peer), p->tag) == p);
	}
	FUZZ_CHECK(ctx == NULL || (ctx->psk_cnt > 0 && ctx->psk_cnt <= TLS_PSKS_MAX));
	tls_ctx_put(ctx);
}

/* -- lists of permitted names -- */

static bool
is_text(const char *entry, const char *kind, const char *name)
{
	size_t k = strlen(kind);

	return strncmp(entry, kind, k) == 0 && entry[k] == ':' &&
	    (strcmp(kind, "dns") == 0 ? strcasecmp : strcmp)(entry + k + 1, name) == 0;
}

/* As the manual has it, of one entry. */
static bool
may_permit(const char *entry, const char *kind, const char *name)
{
	const char *uri = strncmp(entry, "uri:", 4) == 0 ? entry + 4 : entry;
	size_t len = strlen(uri);

	if (strcmp(entry, "*") == 0 || is_text(entry, kind, name))
		return true;
	return strcmp(kind, "uri") == 0 &&
	    (strcmp(uri, name) == 0 || (len > 1 && uri[len - 1] == '*' && strncmp(uri, name, len - 1) == 0));
}

/* An entry and a name, with a NUL between: what no entry says is not permitted. */
static void
names(const uint8_t *data, size_t len)
{
	static const char *const kinds[] = { "uri", "dns", "psk" };
	char entry[TLS_NAMES_MAX], name[TLS_NAME_MAX];
	size_t first = strnlen((const char *)data, len);

	(void)snprintf(entry, sizeof(entry), "%.*s", (int)first, (const char *)data);
	(void)snprintf(
	    name, sizeof(name), "%.*s", (int)(first < len ? len - first - 1 : 0), (const char *)data + first + 1);
	for (unsigned psk = 0; psk < 2; psk++) {
		if (tls_name_error(entry, psk == 1) != NULL)
			continue;
		FUZZ_CHECK(strchr(entry, '\n') == NULL && entry[0] != '\0');
		for (unsigned i = 0; i < 3; i++)
			FUZZ_CHECK(!tls_names_have(entry, kinds[i], name) || may_permit(entry, kinds[i], name));
	}
	for (unsigned i = 0; i < 3; i++)
		(void)tls_names_have(entry, kinds[i], name);
}

/* -- names of certificates -- */

static bool
holds(const uint8_t *data, size_t len, const char *text)
{
	return memmem(data, len, text, strlen(text)) != NULL;
}

/* The bytes of a subjectAltName: no name but one that stands there, and none that a log line could not have. */
static void
sans(const uint8_t *data, size_t len)
{
	static struct tls_io io;
	X509 *cert = X509_new();
	ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();

	FUZZ_CHECK(cert != NULL && value != NULL && ASN1_OCTET_STRING_set(value, data, (int)len) == 1);
	X509_EXTENSION *ext = X509_EXTENSION_create_by_NID(NULL, NID_subject_alt_name, 0, value);
	FUZZ_CHECK(ext != NULL && X509_add_ext(cert, ext, -1) == 1);
	for (unsigned i = 0; i < 2; i++) {
		memset(&io, 0, sizeof(io));
		(void)snprintf(io.names, sizeof(io.names), "%s", i == 0 ? "spiffe://example.org/a\ndns:gw-a" : "");
		(void)snprintf(io.host, sizeof(io.host), "gw-a");
		if (tls_who_of_cert(&io, cert))
			FUZZ_CHECK(holds(data, len, "gw-a") || (i == 0 && holds(data, len, "spiffe://example.org/a")) ||
			    holds(data, len, "GW-A") || strcasestr(io.peer.name, "gw-a") != NULL);
		for (const char *c = io.peer.name; *c != '\0'; c++)
			FUZZ_CHECK(isgraph((unsigned char)*c) && strchr("\"'\\", *c) == NULL);
	}
	X509_EXTENSION_free(ext);
	ASN1_OCTET_STRING_free(value);
	X509_free(cert);
}

/* -- the first bytes of a peer -- */

static const char file[] = "gw-a:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
static const uint8_t secret[TLS_SECRET_LEN] = "a secret that no input can have";

static const uint8_t *
find(void *arg, const struct tls_link *at)
{
	(void)arg;
	return at->qpn % 2 == 0 ? secret : NULL;
}

/* By a server with PSKs, a passive end of a link, a client, an active end. No input proves a name: their keys are fresh. */
static void
first_bytes(unsigned part, const uint8_t *data, size_t len)
{
	static const struct tls_link at = { 0x123456, 0xabcdef };
	static struct tls_ctx *ctx;
	static uint8_t sent[8192];
	unsigned tells = 0;
	int fd[2], n = 0;

	if (ctx == NULL)
		ctx = load((const uint8_t *)file, sizeof(file) - 1, &tells);
	FUZZ_CHECK(ctx != NULL && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
	struct tls_io *io = part == 0 ? tls_io_new(ctx, false, fd[0], "*", "")
	    : part == 1               ? tls_link_accept(fd[0], find, NULL)
	    : part == 2               ? tls_io_new(ctx, true, fd[0], "psk:gw-a", "gw-a.example.org")
	                              : tls_link_dial(fd[0], secret, &at);
	FUZZ_CHECK(io != NULL);
	/* In two pieces, then the end. */
	for (size_t from = 0, to = len / 2; n == 0 && from < len; from = to, to = len) {
		FUZZ_CHECK(write(fd[1], data + from, to - from) == (ssize_t)(to - from));
		n = tls_io_handshake(io);
	}
	(void)shutdown(fd[1], SHUT_WR);
	for (unsigned i = 0; i < 3 && n == 0; i++)
		n = tls_io_handshake(io);
	FUZZ_CHECK(n < 0 && tls_io_why(io)[0] != '\0');
	for (const char *c = tls_io_why(io); *c != '\0'; c++)
		FUZZ_CHECK(isprint((unsigned char)*c));
	/* Nothing but alerts to one who has proven nothing, and no more than a flight of the handshake. */
	ssize_t back = recv(fd[1], sent, sizeof(sent), 0);
	FUZZ_CHECK(back < 4096 && (back <= 0 || (sent[0] >= 20 && sent[0] <= 23)));
	tls_io_free(io);
	close(fd[0]);
	close(fd[1]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	const unsigned part = data[0] % 7;

	if (part == 0)
		psk_file(data + 1, len - 1);
	else if (part == 1)
		names(data + 1, len - 1);
	else if (part == 2)
		sans(data + 1, len - 1);
	else
		first_bytes(part - 3, data + 1, len - 1);
	return 0;
}
