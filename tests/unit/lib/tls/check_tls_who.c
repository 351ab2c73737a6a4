/* Names of certificates, unsigned ones made here; tests/integration/check_tls.py has handshakes with them. */
#include <openssl/x509v3.h>

#include "tls/tls_int.h"
#include "unit.h"

/* With these subjectAltNames, as openssl-x509v3_config(5) writes them; NULL: none. */
static X509 *
cert_of(const char *sans, const char *common_name)
{
	X509 *cert = X509_new();

	ck_assert_ptr_nonnull(cert);
	ck_assert_int_eq(X509_set_version(cert, X509_VERSION_3), 1);
	ck_assert_int_eq(X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
	                     (const unsigned char *)common_name, -1, -1, 0),
	    1);
	if (sans != NULL) {
		X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, sans);

		ck_assert_ptr_nonnull(ext);
		ck_assert_int_eq(X509_add_ext(cert, ext, -1), 1);
		X509_EXTENSION_free(ext);
	}
	return cert;
}

/* The peer of a client for this host, or with these names. */
static bool
permits(struct tls_io *io, const char *sans, const char *host, const char *names)
{
	X509 *cert = cert_of(sans, "common.example");

	memset(io, 0, sizeof(*io));
	(void)snprintf(io->host, sizeof(io->host), "%s", host);
	(void)snprintf(io->names, sizeof(io->names), "%s", names);
	bool yes = tls_who_of_cert(io, cert);
	X509_free(cert);
	return yes;
}

START_TEST(the_host_is_exact)
{
	static const struct {
		const char *sans, *host;
		bool yes;
	} cases[] = {
		{ "DNS:gw-b.example", "gw-b.example", true },
		{ "DNS:other,DNS:gw-b.example", "gw-b.example", true },
		{ "DNS:gw-b.example", "gw-c.example", false },
		{ "DNS:*.gw.example", "b.gw.example", false },
		{ "DNS:b*.gw.example", "b1.gw.example", false },
		{ "IP:192.0.2.1", "192.0.2.1", true },
		{ "IP:192.0.2.1", "192.0.2.2", false },
		{ "DNS:gw-b.example", "", false },
		{ NULL, "common.example", false },
	};
	struct tls_io io;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(permits(&io, cases[i].sans, cases[i].host, "") == cases[i].yes, "%zu", i);
}

static void
expect_name(const char *sans, const char *common_name, const char *expected)
{
	X509 *cert = cert_of(sans, common_name);
	char name[TLS_NAME_MAX];

	tls_who_name(cert, name);
	ck_assert_str_eq(name, expected);
	X509_free(cert);
}

START_TEST(names_have_no_quotes)
{
	expect_name("URI:spiffe://a/b", "x", "spiffe://a/b");
	expect_name("URI:spiffe://a'b,URI:spiffe://c", "x", "spiffe://c");
	expect_name("DNS:a\"b,DNS:gw-b", "x", "dns:gw-b");
	expect_name("URI:a:\\,DNS:a b", "x", "/CN=x");
	expect_name(NULL, "x\" reason='y' \\\n", "/CN=x? reason=?y? ??x0A");
}

/* SHA-256("smcrd name v1" || 00 || KIND:TEXT), or of a subject in DER, by sha256sum(1). */
static void
expect_id(const char *sans, const char *name, const uint8_t id[4])
{
	struct tls_io io;

	ck_assert(permits(&io, sans, "", "*"));
	ck_assert_str_eq(io.peer.name, name);
	ck_assert_mem_eq(io.peer.id, id, 4);
}

START_TEST(digests_have_the_kind)
{
	static const uint8_t ids[][4] = { { 0x7f, 0x37, 0xd6, 0xb3 }, { 0x75, 0x3d, 0x7f, 0xb5 },
		{ 0x20, 0x37, 0x53, 0xe3 } };

	expect_id("URI:spiffe://a/b", "spiffe://a/b", ids[0]);
	expect_id("DNS:gw-b", "dns:gw-b", ids[1]);
	expect_id(NULL, "/CN=common.example", ids[2]);
}

/* Of a text that is cut, or reads the same, the whole name counts. */
START_TEST(names_that_read_the_same_differ)
{
	char sans[2][300], name[TLS_NAME_MAX];
	uint8_t ids[2][32];
	struct tls_io io;

	for (int i = 0; i < 4; i++) {
		(void)snprintf(sans[i % 2], sizeof(sans[0]), "%0252d%d", 0, i % 2);
		X509 *cert = i < 2 ? cert_of(NULL, i == 0 ? "x/CN=y" : "y") : cert_of(NULL, sans[i % 2] + 192);

		for (int k = 0; k < (i < 2 ? i : 4); k++)
			ck_assert_int_eq(
			    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), i < 2 ? "CN" : "O", MBSTRING_UTF8,
			        (const unsigned char *)(i < 2 ? "x" : sans[0] + 192), -1, 0, 0),
			    1);
		memset(&io, 0, sizeof(io));
		(void)snprintf(io.names, sizeof(io.names), "*");
		ck_assert(tls_who_of_cert(&io, cert));
		memcpy(ids[i % 2], io.peer.id, sizeof(io.peer.id));
		ck_assert(i % 2 == 0 || memcmp(ids[0], ids[1], sizeof(ids[0])) != 0);
		X509_free(cert);
	}
	/* A DNS name that "dns:NAME" has no room for is none. */
	X509 *cert = cert_of(NULL, "x");
	GENERAL_NAMES *all = GENERAL_NAMES_new();
	GENERAL_NAME *one = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();

	ck_assert(ASN1_STRING_set(text, sans[0], 253) == 1 && sk_GENERAL_NAME_push(all, one) > 0);
	GENERAL_NAME_set0_value(one, GEN_DNS, text);
	ck_assert_int_eq(X509_add1_ext_i2d(cert, NID_subject_alt_name, all, 0, 0), 1);
	ck_assert_str_eq(tls_who_name(cert, name), "subject:");
	GENERAL_NAMES_free(all);
	X509_free(cert);
}

START_TEST(a_uri_poses_as_no_other_kind)
{
	struct tls_io io;

	expect_name("URI:dns:gw-b,URI:spiffe://c", "x", "spiffe://c");
	expect_name("URI:psk:gw-b", "x", "/CN=x");
	ck_assert(!permits(&io, "URI:dns:gw-b", "", "uri:dns:gw-b\ndns:gw-b"));
	ck_assert(permits(&io, "DNS:gw-b", "", "dns:gw-b"));
}
