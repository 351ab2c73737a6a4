/* Why a stream failed, in words, by cause; see tls.h. The first reason counts. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tls/tls_int.h"

#define CLC_EYE "\xe2\xd4\xc3\xd9" /* RFC 7609 A.2.1 */

static const char no_suite[] = "no cipher suite in common: see tls.suites of both ends";

void
tls_blame(struct tls_io *io, enum tls_failure failure, const char *fmt, ...)
{
	va_list ap;

	if (io->why[0] != '\0')
		return;
	tls_count(failure);
	va_start(ap, fmt);
	(void)vsnprintf(io->why, sizeof(io->why), fmt, ap);
	va_end(ap);
}

/* -- certificates -- */

static const char *
say_date(const ASN1_TIME *t, char buf[32])
{
	time_t now = time(NULL);
	struct tm tm;

	if (t == NULL ? gmtime_r(&now, &tm) == NULL : ASN1_TIME_to_tm(t, &tm) != 1)
		return "?";
	return strftime(buf, 32, "%Y-%m-%d %H:%M", &tm) > 0 ? buf : "?";
}

/* Within an hour of now. */
static bool
is_near(const ASN1_TIME *t)
{
	int days = 1, secs = 0;

	return ASN1_TIME_diff(&days, &secs, NULL, t) == 1 && days == 0 && abs(secs) < 3600;
}

void
tls_blame_cert(struct tls_io *io, X509_STORE_CTX *store)
{
	const int err = X509_STORE_CTX_get_error(store);
	const X509_CRL *crl = X509_STORE_CTX_get0_current_crl(store);
	X509 *cert = X509_STORE_CTX_get_current_cert(store);
	char name[TLS_NAME_MAX] = "?", date[32], now[32];
	const bool early = err == X509_V_ERR_CERT_NOT_YET_VALID, late = err == X509_V_ERR_CERT_HAS_EXPIRED;
	const ASN1_TIME *at = err == X509_V_ERR_CRL_HAS_EXPIRED && crl != NULL ? X509_CRL_get0_nextUpdate(crl)
	    : cert != NULL && early                                            ? X509_get0_notBefore(cert)
	    : cert != NULL && late                                             ? X509_get0_notAfter(cert)
	                                                                       : NULL;

	if (cert != NULL)
		(void)tls_who_name(cert, name);
	if (at == NULL)
		tls_blame(io, TLS_CERTIFICATE, "certificate of '%s': %s", name, X509_verify_cert_error_string(err));
	else
		tls_blame(io, TLS_CERTIFICATE, "certificate of '%s': %s %s (this host's clock: %s, UTC%s)", name,
		    early      ? "valid from"
		        : late ? "expired"
		               : "CRL expired",
		    say_date(at, date), say_date(NULL, now), is_near(at) ? ": is a clock wrong?" : "");
}

/* -- the handshake, and later -- */

/* The peer's alert. */
static void
blame_alert(struct tls_io *io, int alert)
{
	bool psk = io->ctx->psk_cnt > 0;

	if (alert == SSL_AD_HANDSHAKE_FAILURE && !psk && tls_io_suite(io) == 0)
		tls_blame(io, TLS_SUITE, no_suite);
	else if (alert == SSL_AD_HANDSHAKE_FAILURE && psk && io->client)
		tls_blame(io, TLS_PSK, "peer does not know our PSK name '%s', or it is not '%s'%s%s", io->ctx->name,
		    io->psk->peer, io->psk->tag[0] != '\0' ? ", or lacks its key @" : "", io->psk->tag);
	else if (psk && (alert == SSL_AD_ILLEGAL_PARAMETER || alert == SSL_AD_DECRYPT_ERROR))
		tls_blame(io, TLS_PSK, "the two keys differ");
	else if (alert == SSL_AD_HANDSHAKE_FAILURE)
		tls_blame(io, TLS_NAME, "peer refuses the name of our certificate: see its peer_names");
	else if (alert == SSL_AD_CERTIFICATE_EXPIRED)
		tls_blame(io, TLS_CERTIFICATE, "peer says that our certificate has expired, or is not valid yet");
	else if (alert == SSL_AD_CERTIFICATE_REVOKED)
		tls_blame(io, TLS_CERTIFICATE, "peer says that our certificate is revoked");
	else if (alert == SSL_AD_UNKNOWN_CA)
		tls_blame(io, TLS_CERTIFICATE, "peer does not know the CA of our certificate");
	else if (alert == SSL_AD_PROTOCOL_VERSION)
		tls_blame(io, TLS_NOT_SPOKEN, "peer does not speak TLS 1.3");
	else if (alert == SSL_AD_NO_APPLICATION_PROTOCOL)
		tls_blame(io, TLS_NOT_SPOKEN, "peer speaks TLS, but not smcrd/1");
	else
		tls_blame(io, TLS_OTHER, "TLS alert of the peer: %s", SSL_alert_desc_string_long(alert));
}

static void
blame_handshake(struct tls_io *io, int reason)
{
	bool tls = io->first_len == 0 || (io->first[0] >= 20 && io->first[0] <= 23);

	if (!tls)
		tls_blame(io, TLS_NOT_SPOKEN, "peer does not speak TLS%s",
		    io->first_len >= 4 && memcmp(io->first, CLC_EYE, 4) == 0 ? ": it answered CLC" : "");
	else if (reason == SSL_R_BINDER_DOES_NOT_VERIFY)
		tls_blame(io, TLS_PSK, "key differs: PSK name '%s%s%s'", io->psk != NULL ? io->psk->peer : "",
		    io->psk != NULL && io->psk->tag[0] != '\0' ? "@" : "", io->psk != NULL ? io->psk->tag : "");
	else if (io->psk_unknown)
		tls_blame(io, TLS_PSK, "PSK name not known, or not for '%s'", io->ctx->name);
	else if (io->ctx->psk_cnt > 0 && reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		tls_blame(io, TLS_PSK, "peer does not use our PSK");
	else if (reason == SSL_R_NO_SHARED_CIPHER)
		tls_blame(io, TLS_SUITE, no_suite);
	else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		tls_blame(io, TLS_CERTIFICATE, "peer has no certificate");
	else if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_VERSION_TOO_LOW)
		tls_blame(io, TLS_NOT_SPOKEN, "peer does not speak TLS 1.3");
	else
		tls_blame(io, TLS_OTHER, "TLS: %s", ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason)));
}

int
tls_blame_call(struct tls_io *io, int what)
{
	const int reason = ERR_GET_REASON(ERR_peek_last_error());
	const bool during = !io->proven;

	if (what == SSL_ERROR_SSL && reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
		blame_alert(io, reason - SSL_AD_REASON_OFFSET);
	} else if (io->refused) {
		return -EPROTO;
	} else if (io->eof || io->err != 0) {
		if (during && io->client && io->first_len == 0)
			tls_blame(io, TLS_NOT_SPOKEN, "peer closed at our ClientHello: is secure set there?");
		else if (during)
			tls_blame(io, tls_io_is_silent(io) ? TLS_OTHER : TLS_BROKEN,
			    "peer closed the connection during the TLS handshake");
		else
			tls_blame(io, TLS_BROKEN, "the TLS stream ended without close_notify");
		return io->err != 0 ? -io->err : -ENODATA;
	} else if (during) {
		blame_handshake(io, reason);
	} else {
		tls_blame(io, TLS_BROKEN, "TLS: bad record");
	}
	return -EPROTO;
}
