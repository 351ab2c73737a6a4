/* The name that a certificate proves. Exact match with any name among its subjectAltNames; the common name never counts,
 * nor do wildcards. */
#include <openssl/x509v3.h>
#include <string.h>

#include "tls/tls_int.h"

/* Those of log lines around a name, and their escape: even an unproven name is logged. */
static bool
is_quote(char c)
{
	return c == '"' || c == '\'' || c == '\\';
}

/* A string of the certificate as text. False for one with a NUL, a newline, or another character that no name has. */
static bool
name_text(const ASN1_STRING *s, char out[TLS_NAME_MAX])
{
	int len = ASN1_STRING_length(s);
	const unsigned char *data = ASN1_STRING_get0_data(s);

	if (len <= 0 || len >= TLS_NAME_MAX)
		return false;
	for (int i = 0; i < len; i++)
		if (data[i] <= ' ' || data[i] > '~' || is_quote((char)data[i]))
			return false;
	memcpy(out, data, (size_t)len);
	out[len] = '\0';
	return true;
}

/* A URI that reads as a name of another kind does not count. */
static bool
is_other_kind(int type, const char *name)
{
	return type == GEN_URI && (strncmp(name, "dns:", 4) == 0 || strncmp(name, "psk:", 4) == 0);
}

/* Calls fn for each URI or DNS name; true once fn is. */
static bool
each_name(X509 *cert, int type, bool (*fn)(void *arg, const char *name), void *arg)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	char text[TLS_NAME_MAX];
	bool found = false;

	for (int i = 0; !found && i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(all, i);

		found = n->type == type &&
		    name_text(type == GEN_URI ? n->d.uniformResourceIdentifier : n->d.dNSName, text) &&
		    !is_other_kind(type, text) && fn(arg, text);
	}
	GENERAL_NAMES_free(all);
	return found;
}

static bool
keep_uri(void *arg, const char *name)
{
	(void)snprintf(arg, TLS_NAME_MAX, "%s", name);
	return true;
}

static bool
keep_dns(void *arg, const char *name)
{
	return snprintf(arg, TLS_NAME_MAX, "dns:%s", name) < TLS_NAME_MAX;
}

const char *
tls_who_name(X509 *cert, char name[TLS_NAME_MAX])
{
	if (each_name(cert, GEN_URI, keep_uri, name))
		return "uri:";
	if (each_name(cert, GEN_DNS, keep_dns, name))
		return "";
	(void)X509_NAME_oneline(X509_get_subject_name(cert), name, TLS_NAME_MAX);
	for (char *c = name; *c != '\0'; c++)
		*c = is_quote(*c) ? '?' : *c;
	return "subject:";
}

void
tls_who_set(struct tls_who *out, const char *kind, const char *name)
{
	static const char label[] = "smcrd name v1"; /* with its NUL */
	char text[sizeof(label) + 16 + TLS_NAME_MAX];
	int len = snprintf(text + sizeof(label), sizeof(text) - sizeof(label), "%s%s", kind, name);

	memcpy(text, label, sizeof(label));
	(void)snprintf(out->name, sizeof(out->name), "%s", name);
	(void)SHA256((const unsigned char *)text, sizeof(label) + (size_t)len, out->id);
}

static bool
permits_uri(void *names, const char *name)
{
	return tls_names_have(names, "uri", name);
}

static bool
permits_dns(void *names, const char *name)
{
	return tls_names_have(names, "dns", name);
}

/* The host that was connected. */
static bool
is_host(X509 *cert, const char *host)
{
	const unsigned flags = X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;

	return host[0] != '\0' &&
	    (X509_check_ip_asc(cert, host, 0) == 1 || X509_check_host(cert, host, 0, flags, NULL) == 1);
}

bool
tls_who_permitted(X509 *cert, const char *names, const char *host)
{
	if (names[0] == '\0')
		return is_host(cert, host);
	return strcmp(names, "*") == 0 || each_name(cert, GEN_URI, permits_uri, (void *)(uintptr_t)names) ||
	    each_name(cert, GEN_DNS, permits_dns, (void *)(uintptr_t)names);
}

bool
tls_who_of_cert(struct tls_io *io, X509 *cert)
{
	char name[TLS_NAME_MAX];

	const char *kind = tls_who_name(cert, name);

	tls_who_set(&io->peer, kind, name);
	/* As text a subject may be cut, or read as another one. */
	if (strcmp(kind, "subject:") == 0)
		(void)X509_NAME_digest(X509_get_subject_name(cert), EVP_sha256(), io->peer.id, NULL);
	return tls_who_permitted(cert, io->names, io->host);
}
