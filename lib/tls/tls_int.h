/* Between the files of this room. */
#pragma once

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <time.h>

#include "tls/tls.h"

/* ALPN, with its length (RFC 7301 3.1). */
static const unsigned char tls_alpn[] __attribute__((unused)) = { 7, 's', 'm', 'c', 'r', 'd', '/', '1' };
/* Of sessions, as which OpenSSL treats PSKs. */
static const unsigned char tls_context[] = { 's', 'm', 'c', 'r', 'd' };

/* Mode bits that a file of keys must not have, and words for it. */
#define TLS_OF_OTHERS 0007
static const char tls_of_others[] __attribute__((unused)) = "is accessible by every user: set its mode to 0640 at most";

#define TLS_PEER_MAX 64 /* an address */

/* A suite of each hash. */
#define SUITE_SHA256 0x1301
#define SUITE_SHA384 0x1302

struct tls_psk {
	char peer[TLS_PSK_NAME_MAX + 1], tag[TLS_PSK_TAG_MAX + 1]; /* "": none */
	uint8_t len;
	uint8_t key[TLS_PSK_MAX];
	uint16_t suite; /* its hash is that of the PSK (RFC 8446 4.2.11); 0: with SHA-256 */
};

struct tls_ctx {
	atomic_uint refs;
	SSL_CTX *client, *server; /* NULL: not used */
	struct tls_stamp stamp;
	uint8_t digest[32]; /* of all that says whom it trusts */
	unsigned resume_s;  /* of associations; 0: none */
	time_t until;       /* the end of our certificate, and of the CRLs */
	char name[TLS_PSK_NAME_MAX + 1];
	struct tls_psk *psks; /* in an own mapping; NULL: certificates */
	unsigned psk_cnt, psk_room;
};

/* A link's part of a stream (tls_link.c). */
struct tls_link_end {
	struct tls_link at;
	tls_link_find find; /* passive */
	void *arg;
	struct tls_psk psk;
};

/* An association that a client offers, or that a server has found for one. */
struct tls_assoc {
	struct tls_proof *proof; /* counted; NULL: none */
	struct tls_psk psk;
};

struct tls_io {
	SSL *ssl;
	struct tls_ctx *ctx;
	int fd;
	int err;    /* of the last failed system call */
	int failed; /* of the first read that failed: to OpenSSL an alert is later the end of the stream */
	bool client, eof, proven;
	bool more;        /* another write follows at once */
	bool drained;     /* the last recv returned less than there was room for */
	bool psk_unknown; /* server: the offered PSK name is not in the file, or not for us */
	unsigned records; /* sent since the last key update */
	unsigned messages,
	    received; /* the peer's after the handshake, beyond those permitted; records while there are any */
	bool refused; /* with the reason in why: no more is read */
	const struct tls_psk *psk;
	struct tls_who peer;
	struct tls_proof *proof; /* counted; NULL: a link, or before the end of the handshake */
	uint8_t first[9];        /* bytes of the peer: the headers of a record and of its message */
	unsigned first_len;
	char identity[2 * TLS_PSK_NAME_MAX + TLS_PSK_TAG_MAX + 3]; /* client, of the PSK */
	struct tls_link_end *link;                                 /* NULL: no link */
	struct tls_assoc assoc;
	bool keeps;            /* one is to be made of this handshake */
	char at[TLS_PEER_MAX]; /* client: where the peer is; "": no association is made */
	char names[TLS_NAMES_MAX], host[TLS_NAME_MAX], why[TLS_NAME_MAX + 128];
};

/* tls_who.c */
/* A verified certificate: fills in io->peer; false: not one of io->names, or of io->host without names. */
bool tls_who_of_cert(struct tls_io *, X509 *);
/* One of these names, or this host without names, is among those of the certificate. */
bool tls_who_permitted(X509 *, const char *names, const char *host);
/* The canonical name of a certificate. Returns its kind where the name lacks it: "uri:", "subject:", else "". */
const char *tls_who_name(X509 *, char name[TLS_NAME_MAX]);
void tls_who_set(struct tls_who *, const char *kind, const char *name);

/* tls_proof.c */
/* After the handshake; NULL: out of memory. */
struct tls_proof *tls_proof_new(struct tls_io *);

/* tls_assoc.c */
#define TLS_ASSOCS_MAX 1024
extern time_t (*tls_clock)(time_t *); /* time(2), but in tests */
void tls_assoc_use(SSL_CTX *, bool client);
/* After a handshake by certificates that the peer has accepted; once. */
void tls_assoc_keep(struct tls_io *);
void tls_assoc_forget(struct tls_io *);

/* tls_psk.c */
/* Memory for keys, zeroed: left out of core files, and locked if the limit of the process permits. NULL: none left. */
void *tls_keys_map(size_t size);
/* Reads the file. False: `tell` was called. */
bool tls_psk_load(struct tls_ctx *, const char *path, tls_tell tell, void *arg);
/* The key of this peer with this tag, "" of none; tag NULL: its first one, which is offered. */
const struct tls_psk *tls_psk_find(const struct tls_ctx *, const char *peer, size_t len, const char *tag);
/* One of this peer with this digest. */
bool tls_psk_has(const struct tls_ctx *, const char *peer, const uint8_t digest[32]);
void tls_psk_free(struct tls_ctx *);
/* The callbacks of both roles. */
void tls_psk_use(SSL_CTX *, bool client);

/* The PSK as OpenSSL takes it; NULL: out of memory. */
SSL_SESSION *tls_psk_session(SSL *, const struct tls_psk *);
/* It may be offered: after a HelloRetryRequest, which demands a hash, else NULL. */
bool tls_psk_fits(const struct tls_psk *, const EVP_MD *);

/* tls_ctx.c */
/* The earlier of both; NULL, or no time: `until`. */
time_t tls_earlier(time_t until, const ASN1_TIME *);
/* With all that is common to our contexts; suites: 0: those with SHA-256. NULL: see OpenSSL's error queue. */
SSL_CTX *tls_ctx_new(bool client, unsigned suites);

/* tls_blame.c */
/* Counts and keeps the first reason. */
void tls_blame(struct tls_io *, enum tls_failure, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void tls_blame_cert(struct tls_io *, X509_STORE_CTX *);
/* After a call that failed with this result of SSL_get_error(): a negative errno. */
int tls_blame_call(struct tls_io *, int what);

/* tls_link.c */
void tls_link_free(struct tls_link_end *);

/* tls_io.c */
/* Takes `link`, and frees it on failure. */
struct tls_io *tls_io_make(struct tls_ctx *, bool client, int fd, const struct tls_psk *, struct tls_link_end *link);
struct tls_io *tls_io_of(const SSL *);
/* X509_STORE's callback. */
int tls_io_verify(int ok, X509_STORE_CTX *);
/* SSL_CTX's callback for messages: bounds those after the handshake. */
void tls_io_message(int sent, int version, int type, const void *buf, size_t len, SSL *, void *arg);
int tls_io_alpn(
    SSL *, const unsigned char **out, unsigned char *out_len, const unsigned char *in, unsigned in_len, void *);
