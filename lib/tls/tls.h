/* TLS 1.3 between gateways, by OpenSSL 3.0 or later; tls_none.c is a build without it. The only room that knows OpenSSL.
 * A context has keys and rules of a configuration, is constant, and shared by all threads. A stream is one end of one
 * connection, used by one thread, on a non-blocking socket that its owner watches.
 * Off: renegotiation, tickets, early data, compression. Each full handshake proves both ends, by certificates (RFC 5280)
 * or by a configured PSK with X25519 or P-256 (RFC 8446 2.2, psk_dhe_ke). Later ones may use an association. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define TLS_NAME_MAX 256
#define TLS_NAMES_MAX 512 /* a list of permitted peers */
#define TLS_PSK_NAME_MAX 60
#define TLS_PSK_TAG_MAX 15 /* of a key, where a peer has several */
#define TLS_PSK_MIN 32
#define TLS_PSK_MAX 64
#define TLS_PSKS_MAX 256 /* entries of a file */
#define TLS_EXPIRES_SOON_DAYS 14

/* This build has TLS. */
bool tls_is_built(void);

/* -- contexts -- */

enum {
	TLS_AS_CLIENT = 1 << 0, /* of an ingress */
	TLS_AS_SERVER = 1 << 1, /* of an egress */
};

/* Cipher suites (RFC 8446 B.4), the preferred one first. */
enum {
	TLS_AES_128 = 1 << 0,
	TLS_CHACHA20 = 1 << 1,
	TLS_AES_256 = 1 << 2, /* with SHA-384, so not with configured PSKs */
};

/* Its name by its code, "" of none. */
const char *tls_suite_name(unsigned code);

/* Paths of files; "" or NULL: not set. Either cert, key and ca, maybe crl; or name and psk. */
struct tls_files {
	const char *cert, *key, *ca, *crl; /* PEM; cert may be followed by its chain */
	const char *name, *psk;            /* our name; lines PEER-NAME:HEX or PEER-NAME@TAG:HEX */
	unsigned resume_s;                 /* of associations; 0: none */
	unsigned suites;                   /* TLS_ suites; 0: those with SHA-256 */
};

struct tls_ctx;

/* State of the files: differs when one was changed or replaced. All zeros: of no files. */
struct tls_stamp {
	uint64_t of[5][5];
};

/* Blocks as long as their file systems. */
void tls_files_look(const struct tls_files *, struct tls_stamp *);
/* End of our certificate, seconds since 1970; 0: there is only a PSK file. */
int64_t tls_ctx_not_after(const struct tls_ctx *);
/* Before they were read. */
const struct tls_stamp *tls_ctx_stamp(const struct tls_ctx *);

/* Reports a problem of the setting, a static name of struct tls_files. */
typedef void (*tls_tell)(void *arg, bool warning, const char *setting, const char *text);

/* Reads the files; uses: TLS_AS_ bits. NULL: after at least one error to `tell`. The caller owns one reference. */
struct tls_ctx *tls_ctx_load(const struct tls_files *, unsigned uses, tls_tell tell, void *arg);
/* From any thread; NULL is allowed. */
struct tls_ctx *tls_ctx_get(struct tls_ctx *);
void tls_ctx_put(struct tls_ctx *);

#define TLS_SCOPE_LEN 16

/* The rules that permit a peer, as a digest: keys, CAs and CRLs of the context, a level of protection, and the names or
 * host, as of tls_io_new(). What was permitted by other rules says nothing about these. */
void tls_scope(const struct tls_ctx *, unsigned level, const char *names, const char *host, uint8_t out[TLS_SCOPE_LEN]);

/* -- names of peers -- */

/* One entry of peer_names: a URI, maybe with a final "/" and star (SPIFFE), "uri:URI", "dns:NAME", "psk:NAME" or "*".
 * NULL, or the error. psk: names of a PSK file, otherwise of certificates. */
const char *tls_name_error(const char *entry, bool psk);
/* The list, entries separated by '\n', has this name of this kind ("uri", "dns", "psk"). */
bool tls_names_have(const char *list, const char *kind, const char *name);

/* The peer as proven. */
struct tls_who {
	char name[TLS_NAME_MAX]; /* with its kind: "spiffe://a/b", "dns:gw-b", "psk:gw-b", or the subject */
	/* SHA-256("smcrd name v1" || 0 || kind ":" text), of a URI, DNS name or PSK; or of a subject's DER. */
	uint8_t id[32];
};

/* -- streams -- */

struct tls_io;

/* names: permitted peers, as above; host: of a client, sent as SNI unless it is an address, and the permitted name with
 * an empty list. Both are copied. fd stays the caller's. A client with PSKs uses the first "psk:" name. NULL: out of
 * memory, or no PSK for that name. */
struct tls_io *tls_io_new(struct tls_ctx *, bool client, int fd, const char *names, const char *host);
void tls_io_free(struct tls_io *);

/* Failures by cause, of which a stream has the first alone. */
enum tls_failure {
	TLS_NOT_SPOKEN,  /* no TLS 1.3, or no smcrd/1 */
	TLS_CERTIFICATE, /* refused by either end, or none */
	TLS_NAME,        /* proven, but not permitted by either end */
	TLS_PSK,         /* a name unknown to either end, or keys that differ */
	TLS_SUITE,       /* none in common */
	TLS_BROKEN,      /* changed, cut, flooded */
	TLS_OTHER,
	TLS_FAILURE_CNT
};

/* Of this thread's streams. */
struct tls_counts {
	uint64_t freed, failed[TLS_FAILURE_CNT];
};

const struct tls_counts *tls_counts(void);
/* A failure without a stream. */
void tls_count(enum tls_failure);

/* A client, before its handshake: offers an association with the peer at this address, of an earlier handshake by
 * certificates, if these rules permit it. A server that does not have it goes on with certificates. */
void tls_io_resume(struct tls_io *, const char *at);
/* After the handshake: it was by an association. */
bool tls_io_is_resumed(const struct tls_io *);
/* The code of its suite, 0 before there is one. */
unsigned tls_io_suite(const struct tls_io *);
/* 1: both ends are proven; 0: goes on after the next readiness; -errno: failed, see tls_io_why(). */
int tls_io_handshake(struct tls_io *);
/* After the handshake. > 0: bytes; 0: end of data (close_notify); -EAGAIN: none now; else -errno, and tls_io_why().
 * -ENODATA: the connection ended without close_notify. */
ssize_t tls_io_read(struct tls_io *, void *buf, size_t len);
/* > 0: bytes taken, maybe fewer; -EAGAIN: repeat with the same bytes, maybe more, when writable; else -errno. more: the
 * next write follows at once, and these bytes may wait for it. */
ssize_t tls_io_write(struct tls_io *, const void *buf, size_t len, bool more);
/* Sends close_notify: 0 sent, -EAGAIN: repeat when writable; else -errno. */
int tls_io_finish(struct tls_io *);
/* Bytes were received and not yet read. */
bool tls_io_has_bytes(const struct tls_io *);
/* Why it failed, for the operator; "" so far. Valid until tls_io_free(). */
const char *tls_io_why(const struct tls_io *);
/* The peer failed before it sent anything, as a connection that only tries the port. */
bool tls_io_is_silent(const struct tls_io *);
/* Valid after the handshake. */
const struct tls_who *tls_io_who(const struct tls_io *);
/* tls_scope() of the keys and rules that this stream began with. */
void tls_io_scope(const struct tls_io *, unsigned level, uint8_t out[TLS_SCOPE_LEN]);

/* -- proofs: of a peer, shared by its connections, from any thread -- */

#define TLS_WHY_MAX 320

struct tls_proof;

/* The stream's, valid as long as it; after the handshake. */
struct tls_proof *tls_io_proof(const struct tls_io *);
/* The keys and rules that this stream began with. */
const struct tls_ctx *tls_io_ctx(const struct tls_io *);
/* NULL is allowed for both. */
struct tls_proof *tls_proof_get(struct tls_proof *);
void tls_proof_put(struct tls_proof *);
const struct tls_who *tls_proof_who(const struct tls_proof *);
/* By these keys and rules the peer of our client (or else server) is still trusted: its CA is known, its certificate not
 * revoked, or its PSK the same. The end of a certificate or of a CRL counts for handshakes alone. False: the reason. */
bool tls_proof_holds(const struct tls_proof *, const struct tls_ctx *, bool client, char why[TLS_WHY_MAX]);
/* Its name is one of these, or with an empty list that of the host. */
bool tls_proof_permitted(const struct tls_proof *, const char *names, const char *host);

/* -- links: streams without a name of their own, with keys from the stream that proved both ends -- */

#define TLS_KEY_LEN 32
#define TLS_SECRET_LEN 34       /* a key, and the code of the suite that its links use, big-endian */
#define TLS_HANDSHAKE_BYTE 0x16 /* the first one of a ClientHello (RFC 8446 5.1) */

/* After the handshake of a CLC connection: a secret that only its two ends have (RFC 8446 7.5, label
 * "EXPORTER-smcrd-group-v1"). 0 or -EPROTO. */
int tls_io_secret(struct tls_io *, uint8_t secret[TLS_SECRET_LEN]);

/* A link is one queue pair of the passive end, by the QPN and PSN in its CLC or LLC message. */
struct tls_link {
	uint32_t qpn, psn;
};

/* The active end of a link. fd stays the caller's, secret is copied. NULL: out of memory. */
struct tls_io *tls_link_dial(int fd, const uint8_t secret[TLS_SECRET_LEN], const struct tls_link *);
/* The passive end: `find` returns the secret of a queue pair that still waits for its peer, or NULL. */
typedef const uint8_t *(*tls_link_find)(void *arg, const struct tls_link *);
struct tls_io *tls_link_accept(int fd, tls_link_find find, void *arg);
/* The passive end, after the handshake: the peer has the key of this link alone. */
const struct tls_link *tls_link_proven(const struct tls_io *);
/* The last read took all that the socket had, so that another one waits for its next readiness. */
bool tls_io_is_drained(const struct tls_io *);
