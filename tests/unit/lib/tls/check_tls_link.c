/* The keys of links as bytes, computed elsewhere: a label that changes here changes between two versions as well. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_pair.h"
#include "tls/tls_int.h"
#include "tls_ends.h"
#include "tls_exporter.h"

static const struct tls_link at = { .qpn = 0x00123456, .psn = 0x00abcdef };
static uint8_t secret[TLS_SECRET_LEN];

static void
is_hex(const uint8_t *bytes, size_t len, const char *hex)
{
	uint8_t want[64];

	ck_assert_uint_eq(unhex(hex, want, sizeof(want)), len);
	ck_assert_mem_eq(bytes, want, len);
}

/* By Python: hmac.new(bytes(range(32)), info + b"\1", hashlib.sha256), which is HKDF-Expand (RFC 5869 2.3) of one block. */
START_TEST(psk_and_identity_are_golden)
{
	for (uint8_t i = 0; i < TLS_KEY_LEN; i++)
		secret[i] = i;
	struct tls_io *io = tls_link_dial(-1, secret, &at);
	ck_assert_ptr_nonnull(io);
	is_hex(
	    (const uint8_t *)io->identity, 32, "736d6372642d4c31 3ab4fd5aaeeb001888818678f4cfb6a3 00123456 00abcdef");
	is_hex(io->psk->key, io->psk->len, "43a850bc2123dfc5ab74d6de4c7d0f5f021c1532d26f5cdf9d98265f4d6c7b82");
	tls_io_free(io);
}

static const uint8_t *
its_secret(void *arg, const struct tls_link *l)
{
	return l->qpn == at.qpn && l->psn == at.psn ? arg : NULL;
}

/* The active end offers that identity, and the passive end takes no other. */
START_TEST(the_identity_is_what_is_sent)
{
	uint8_t hello[2048];
	struct ends e;
	int a, b;

	ends_pair(&e);
	e.a = tls_link_dial(e.fd[0], secret, &at);
	e.b = tls_link_accept(e.fd[1], its_secret, secret);
	ck_assert_int_eq(tls_io_handshake(e.a), 0);
	ssize_t n = recv(e.fd[1], hello, sizeof(hello), MSG_PEEK);
	ck_assert_int_gt(n, 0);
	ck_assert_ptr_nonnull(memmem(hello, (size_t)n, e.a->identity, 32));
	shake(&e, &a, &b);
	ck_assert_msg(a == 1 && b == 1, "%s; %s", tls_io_why(e.a), tls_io_why(e.b));
	ck_assert_uint_eq(tls_link_proven(e.b)->qpn, at.qpn);
	ends_fini(&e);
}

static int
unsent(int fd)
{
	int bytes = -1;

	ck_assert_int_eq(ioctl(fd, SIOCOUTQNSD, &bytes), 0);
	return bytes;
}

/* A turn's records wait for the last one alone, and not for room. */
START_TEST(records_of_a_turn_leave_together)
{
	static uint8_t record[10000];
	struct ends e = { 0 };
	int a, b;
	ssize_t n;

	tcp_pair(e.fd);
	ck_assert_int_eq(setsockopt(e.fd[0], IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	e.a = tls_link_dial(e.fd[0], secret, &at);
	e.b = tls_link_accept(e.fd[1], its_secret, secret);
	shake(&e, &a, &b);
	ck_assert_msg(a == 1 && b == 1, "%s; %s", tls_io_why(e.a), tls_io_why(e.b));
	ck_assert_int_eq(tls_io_write(e.a, record, sizeof(record), true), sizeof(record));
	ck_assert_int_gt(unsent(e.fd[0]), (int)sizeof(record));
	ck_assert_int_eq(tls_io_write(e.a, record, sizeof(record), false), sizeof(record));
	ck_assert_int_eq(unsent(e.fd[0]), 0);
	ck_assert_int_eq(setsockopt(e.fd[0], SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, sizeof(int)), 0);
	while ((n = tls_io_write(e.a, record, sizeof(record), true)) > 0)
		;
	ck_assert_int_eq(n, -EAGAIN);
	ck_assert_int_eq(unsent(e.fd[0]), 0);
	ends_fini(&e);
}

/* Each suite, that of the secret alone: with SHA-384 the PSK has another hash. */
START_LOOP_TEST(its_suite_is_that_of_the_secret, 0x1301, 0x1304)
{
	struct ends e;
	int a, b;

	secret[TLS_KEY_LEN] = 0x13;
	secret[TLS_KEY_LEN + 1] = (uint8_t)_i;
	ends_pair(&e);
	e.a = tls_link_dial(e.fd[0], secret, &at);
	e.b = tls_link_accept(e.fd[1], its_secret, secret);
	shake(&e, &a, &b);
	ck_assert_msg(a == 1 && b == 1, "%s; %s", tls_io_why(e.a), tls_io_why(e.b));
	ck_assert_uint_eq(tls_io_suite(e.a), _i);
	ck_assert_uint_eq(tls_io_suite(e.b), _i);
	ends_fini(&e);
}

/* Another one with the same hash. */
START_TEST(another_suite_is_refused)
{
	uint8_t other[TLS_SECRET_LEN];
	struct ends e;
	int a, b;

	memcpy(other, secret, sizeof(other));
	other[TLS_KEY_LEN] = 0x13;
	other[TLS_KEY_LEN + 1] = 0x03;
	ends_pair(&e);
	e.a = tls_link_dial(e.fd[0], other, &at);
	e.b = tls_link_accept(e.fd[1], its_secret, secret);
	shake(&e, &a, &b);
	ck_assert_int_eq(b, -EPROTO);
	ck_assert_str_eq(tls_io_why(e.b), "peer uses another cipher suite than the link's");
	ends_fini(&e);
}

START_TEST(the_secret_of_a_group_is_that_exporter)
{
	uint8_t got[2][TLS_SECRET_LEN];
	struct ends e;
	int a, b;

	ends_init(&e, "gw-b:" KEY_A "\n", "gw-a:" KEY_A "\n", "psk:gw-b", "psk:gw-a");
	ck_assert_int_eq(tls_io_secret(e.a, got[0]), -EPROTO);
	SSL_CTX_set_keylog_callback(e.ctx_a->client, keep_exporter);
	shake(&e, &a, &b);
	ck_assert(a == 1 && b == 1);
	ck_assert(tls_io_secret(e.a, got[0]) == 0 && tls_io_secret(e.b, got[1]) == 0);
	for (int i = 0; i < 2; i++) {
		is_exporter(got[i], TLS_KEY_LEN, "EXPORTER-smcrd-group-v1");
		is_hex(got[i] + TLS_KEY_LEN, TLS_SECRET_LEN - TLS_KEY_LEN, "1301");
	}
	ends_fini(&e);
}
