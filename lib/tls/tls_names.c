/* What needs no OpenSSL: lists of permitted peers, and the state of files; see tls.h. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "tls/tls.h"

static bool
tls_names_begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* RFC 3986 3.1. */
static bool
is_uri(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (n > 0 && s[n] != '\0' && strchr("+-.", s[n]) != NULL))
		n++;
	return n > 1 && s[n] == ':' && s[n + 1] != '\0';
}

const char *
tls_suite_name(unsigned code)
{
	return code == 0x1301 ? "TLS_AES_128_GCM_SHA256"
	    : code == 0x1302  ? "TLS_AES_256_GCM_SHA384"
	    : code == 0x1303  ? "TLS_CHACHA20_POLY1305_SHA256"
	                      : "";
}

const char *
tls_name_error(const char *entry, bool psk)
{
	const char *star = strchr(entry, '*');
	bool any = strcmp(entry, "*") == 0, is_dns = tls_names_begins(entry, "dns:");
	size_t len = strlen(entry);

	for (const char *c = entry; *c != '\0'; c++)
		if (!isgraph((unsigned char)*c))
			return "has a character that no name has";
	if (len == 0 || len >= TLS_NAME_MAX)
		return "must have 1 to 255 characters";
	if (any)
		return NULL;
	if (psk != tls_names_begins(entry, "psk:"))
		return psk ? "must be \"psk:NAME\" or \"*\", as tls.psk is set"
		           : "must not be \"psk:NAME\", as tls.psk is not set";
	if (strcmp(entry, "psk:") == 0 || strcmp(entry, "dns:") == 0)
		return "has no name";
	if (!psk && !is_dns && !is_uri(entry))
		return "must be a URI, \"dns:NAME\" or \"*\"";
	if (star != NULL && (psk || is_dns || star[1] != '\0' || star[-1] != '/'))
		return "may have a star only at the end of a URI, behind a slash";
	return NULL;
}

/* One entry of the list, with its length. */
static bool
entry_is(const char *entry, size_t len, const char *kind, const char *name)
{
	size_t k = strlen(kind);
	bool uri = strcmp(kind, "uri") == 0, typed = len > k && memcmp(entry, kind, k) == 0 && entry[k] == ':';

	if (len == 1 && entry[0] == '*')
		return true;
	if (typed) {
		entry += k + 1;
		len -= k + 1;
	} else if (!uri || (len > 4 && (memcmp(entry, "dns:", 4) == 0 || memcmp(entry, "psk:", 4) == 0))) {
		return false;
	}
	if (uri && len > 2 && memcmp(entry + len - 2, "/*", 2) == 0)
		return strlen(name) > len - 1 && memcmp(entry, name, len - 1) == 0;
	if (strlen(name) != len)
		return false;
	return strcmp(kind, "dns") == 0 ? strncasecmp(entry, name, len) == 0 : memcmp(entry, name, len) == 0;
}

bool
tls_names_have(const char *list, const char *kind, const char *name)
{
	for (size_t len; *list != '\0'; list += len + (list[len] != '\0')) {
		len = strcspn(list, "\n");
		if (entry_is(list, len, kind, name))
			return true;
	}
	return false;
}

void
tls_files_look(const struct tls_files *f, struct tls_stamp *out)
{
	const char *const paths[] = { f->cert, f->key, f->ca, f->crl, f->psk };
	struct stat st;

	*out = (struct tls_stamp){ 0 };
	for (unsigned i = 0; i < 5; i++) {
		uint64_t *of = out->of[i];

		if (paths[i] == NULL || paths[i][0] == '\0' || stat(paths[i], &st) != 0)
			continue;
		of[0] = st.st_dev;
		of[1] = st.st_ino;
		of[2] = (uint64_t)st.st_size;
		of[3] = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
		of[4] = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
	}
}
