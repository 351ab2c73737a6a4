/* Exporters of a handshake, by the key log of OpenSSL and the text of RFC 8446 7.5. */
#pragma once

#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "hex.h"
#include "tls/tls_int.h"

/* exporter_master_secret of the last handshake. */
static uint8_t exporter_master[SHA256_DIGEST_LENGTH];

/* SSL_CTX_set_keylog_callback() */
static inline void
keep_exporter(const SSL *ssl, const char *line)
{
	static const char label[] = "EXPORTER_SECRET ";
	const char *key = strrchr(line, ' ');

	(void)ssl;
	if (strncmp(line, label, sizeof(label) - 1) == 0)
		ck_assert_uint_eq(unhex(key + 1, exporter_master, sizeof(exporter_master)), sizeof(exporter_master));
}

/* HKDF-Expand-Label (RFC 8446 7.1) of at most one block, with the hash of nothing, in place. */
static inline void
expand_label(uint8_t key[SHA256_DIGEST_LENGTH], const char *label, uint8_t len)
{
	uint8_t info[128] = { 0, len }, *to = info + 2;

	*to++ = (uint8_t)(6 + strlen(label));
	to += sprintf((char *)to, "tls13 %s", label);
	*to++ = SHA256_DIGEST_LENGTH;
	SHA256(NULL, 0, to);
	to += SHA256_DIGEST_LENGTH;
	*to++ = 1;
	ck_assert_ptr_nonnull(HMAC(EVP_sha256(), key, SHA256_DIGEST_LENGTH, info, (size_t)(to - info), key, NULL));
}

static inline void
is_exporter(const uint8_t *bytes, uint8_t len, const char *label)
{
	uint8_t key[SHA256_DIGEST_LENGTH];

	memcpy(key, exporter_master, sizeof(key));
	expand_label(key, label, sizeof(key));
	expand_label(key, "exporter", len);
	ck_assert_mem_eq(bytes, key, len);
}
