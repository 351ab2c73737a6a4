/*
 * doc/deviations.md is the statement of conformance: what it says of values is what the code has. Each row of rows() is a
 * piece of a sentence with the values in it, made from the code: SAYS() from headers and encoders, DEFINE() from a constant
 * that is a file's own. It has to be in the document, blanks and line ends aside.
 *
 * To add a sentence with a number or a constant to the document, add its row: a number that no row holds fails, too, but for
 * references: sections (4.4.2, A.2.3, C.1), an RFC's number, and what is behind that or behind "section" (6581 7). Names in
 * capitals with a '_' have to be constants of the headers of lib/wire.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config/config_keys.h"
#include "iwarp/ddp_session.h"
#include "unit.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/enhanced.h"
#include "wire/llc.h"
#include "wire/open.h"

#define TEXT_MAX (1 << 18)
#define KIB(n) ((n) / 1024)
#define MIB(n) ((n) / 1024 / 1024)

static char document[TEXT_MAX], left[TEXT_MAX]; /* with single blanks; left: without what a row holds */

static void
read_file(const char *name, char *out)
{
	const char *top = getenv("top_srcdir");
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", top != NULL ? top : "..", name);
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s", path);
	size_t n = fread(out, 1, TEXT_MAX - 1, f);
	fclose(f);
	out[n] = '\0';
}

static void
read_document(void)
{
	char *to = document;

	read_file("doc/deviations.md", left);
	for (const char *p = left; *p != '\0'; p++)
		if (!isspace((unsigned char)*p))
			*to++ = *p;
		else if (to > document && to[-1] != ' ')
			*to++ = ' ';
	*to = '\0';
	memcpy(left, document, sizeof(left));
}

static void __attribute__((format(printf, 1, 2))) SAYS(const char *fmt, ...)
{
	char piece[512], *at;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	at = strstr(document, piece);
	ck_assert_msg(at != NULL, "doc/deviations.md does not say what the code does: %s", piece);
	memset(left + (at - document), ' ', strlen(piece));
}

/* The number that a .c file gives this constant: digits and products of them. */
static long
DEFINE(const char *file, const char *name)
{
	static char text[TEXT_MAX];
	char line[128];
	long value = 1;

	read_file(file, text);
	snprintf(line, sizeof(line), "#define %s ", name);
	char *at = strstr(text, line);
	ck_assert_msg(at != NULL, "%s: no %s", file, name);
	for (at += strlen(line); *at != '\n' && *at != '/'; at++)
		if (isdigit((unsigned char)*at))
			value *= strtol(at, &at, 0);
	return value;
}

/* -- what goes over the wire -- */

static uint8_t bytes[CLC_MAX_LEN];

static int
encoded(struct clc_msg msg)
{
	int n = clc_encode(&msg, bytes, sizeof(bytes));

	ck_assert_int_gt(n, 0);
	return n;
}

static struct clc_msg
proposal(unsigned version, bool extension)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = (uint8_t)version };
	struct clc_proposal *p = &msg.proposal;

	p->typev1 = CLC_PATH_R;
	p->typev2 = version == 2 ? CLC_PATH_NONE : CLC_PATH_R;
	p->growth_len = CLC_GROWTH_LEN;
	p->ext.present = extension;
	p->ext.version = CLC_SMCRD_EXT_VERSION;
	return msg;
}

/* Where the extension begins in what was encoded. */
static size_t
extension_at(int len)
{
	for (size_t i = 0; i + 4 <= (size_t)len; i++)
		if (memcmp(bytes + i, "smrd", 4) == 0)
			return i;
	ck_abort_msg("no extension");
	return 0;
}

enum { AREA = 40 }; /* where the area for growth begins: RFC 7609 A.2.2 */

static unsigned
proposed_offset(void)
{
	return (unsigned)(bytes[AREA - 2] << 8 | bytes[AREA - 1]);
}

static uint8_t
first_contact_flag(void)
{
	struct clc_msg msg = { .type = CLC_CONFIRM, .version = 1 };
	uint8_t without;

	msg.accept = (struct clc_accept){ .mtu_code = 3, .rmbe_idx = 1, .qpn = 1 };
	encoded(msg);
	without = bytes[7];
	msg.accept.first_contact = true;
	encoded(msg);
	return bytes[7] ^ without;
}

static int
port_at(void)
{
	const struct llc_msg msg = { .type = LLC_ADD_LINK,
		.add_link = { .link_num = 1, .mtu_code = 3, .mpa_port = 0xabcd } };
	uint8_t llc[LLC_LEN];

	ck_assert_int_eq(llc_encode(&msg, LLC_VERSION, llc, sizeof(llc)), LLC_LEN);
	for (int i = 0; i + 1 < LLC_LEN; i++)
		if (llc[i] == 0xab && llc[i + 1] == 0xcd)
			return i;
	return -1;
}

static const struct config_key *
key(const char *name)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	ck_abort_msg("no setting %s", name);
	return NULL;
}

/* -- the rows -- */

static void
rows_smcr(void)
{
	int len;

	SAYS("cursors from 0");
	SAYS("%d random bits make it unique", 8 * CLC_PEER_ID_LEN - 2);
	SAYS("The link user id is %zu random bits", 8 * sizeof(((struct llc_confirm_link *)NULL)->link_uid));
	SAYS("`links_max = %d` is allowed, though 2.2.2 has 2 as the least", (int)key("links_max")->min);
	len = encoded(proposal(1, true));
	SAYS("A Proposal to an smcrd has offset %u and, for IPv4, %d bytes, where A.2.2 has offset 0 and 52",
	    proposed_offset(), len);
	SAYS("In one of version 2 alone the offset is 0");
	SAYS("`smc_version = 1`");
	len = encoded(proposal(2, true));
	size_t at = extension_at(len);
	SAYS("our %u bytes stand where SMC version 2.1 has fields for vendors, at byte %zu of that area", bytes[at + 4],
	    at - AREA);
	SAYS("its OUI would be %02x %02x %02x, which", bytes[at], bytes[at + 1], bytes[at + 2]);
	ck_assert_uint_eq(bytes[at] & 3, 3);
	SAYS("has the flag of that (0x%02x)", first_contact_flag());
	SAYS("in reserved bytes %d and %d (A.3.2), which are 0 for RoCE", port_at(), port_at() + 1);
	SAYS("CONFIRM RKEY names %d other links (A.3.5: 3 and 2)", LLC_LINKS_INLINE);
	SAYS("Size codes 6 to %ld of an element (A.2.3 ends at %u KiB, code 5)",
	    DEFINE("lib/wire/clc.c", "MAX_SIZE_CODE"), KIB(clc_size_bytes(5)));
	SAYS("Up to %d (%u MiB) are sent", CLC_MAX_SIZE_CODE_SENT, MIB(clc_size_bytes(CLC_MAX_SIZE_CODE_SENT)));
	/* Flags that Linux and the RFC know nothing of, and what says that a peer does. */
	ck_assert_uint_eq((CDC_STARTED_OVER | CDC_IN_PEACE) & 0xf8, 0);
	ck_assert_uint_eq(CDC_OPERATOR & 0xe0, 0);
	ck_assert_uint_eq(
	    CLC_FEATURES, CLC_FEATURE_START_OVER | CLC_FEATURE_OPERATOR | CLC_FEATURE_RST_AFTER_C | CLC_FEATURE_OPEN);
	SAYS("by LLC messages of types 0x%02x and 0x%02x", OPEN_GRANT, OPEN_CONN);
	ck_assert_uint_eq(OPEN_GRANT >> 6, 2); /* others ignore them (A.3) */
	ck_assert_uint_eq(OPEN_CONN >> 6, 2);
	SAYS("refuses one by bit 0x%02x beside A", CDC_NOT_OPENED);
	ck_assert_uint_eq(CDC_NOT_OPENED & 0xe0, 0);
}

static void
rows_iwarp(void)
{
	static const char linger[] = "lib/rnic/siw/siw_linger.c", tcp[] = "lib/rnic/siw/tcp/siw_tcp_linger.c";

	SAYS("`mpa_revision = %d` gives the model of RFC 5044", (int)key("mpa_revision")->min);
	SAYS("A peer that needs that gets `mpa_revision = %d`", (int)key("mpa_revision")->min);
	SAYS("Rejected is only an IRD of 0");
	ck_assert_int_eq(key("ird")->max, key("ord")->max);
	SAYS("We never offer 0x%04X, depths that the upper layer agrees on (6581 9.1; `ird` and `ord` end at 0x%04x)",
	    DEPTH_NONE, (unsigned)key("ird")->max);
	SAYS("(5041 7, 1/2/2)");
	SAYS("an invalid STag (1/1/0), one into a closed element as out of bounds (1/1/1)");
	SAYS("if %ld MiB would have to wait for the socket, if %ld newer ones of the device linger, or after %ld s",
	    MIB(DEFINE(tcp, "BYTES_MAX")), DEFINE(linger, "LINGER_MAX"), DEFINE(linger, "LINGER_MS") / 1000);
	SAYS("goes on sending and 1 MiB is there at once");
}

static void
rows_sctp(void)
{
	SAYS("A = 0 and one of B, C, D");
	SAYS("An initiator sends %d and %d, and %d for all that has no code of its own", ENHANCED_TERM_IRD,
	    ENHANCED_TERM_RTR, ENHANCED_TERM_LOCAL);
	SAYS("A session without the block gets %d as well", ENHANCED_TERM_LOCAL);
	SAYS("A session takes %d Negotiates of the draft and sends none; private data are bounded by %d bytes there",
	    DDP_SESSION_NEGOTIATES_MAX, SCTP_DDP_PD_MAX);
}

/* -- the rest of the document -- */

static bool
is_rfc(const char *word)
{
	static const char *const rfcs[] = { "7609", "5040", "5041", "5043", "5044", "6581", "6581's" };

	for (unsigned i = 0; i < sizeof(rfcs) / sizeof(rfcs[0]); i++)
		if (strcmp(word, rfcs[i]) == 0)
			return true;
	return false;
}

/* A word without the marks around it is a reference, not a value. */
static bool
is_reference(const char *word, const char *before)
{
	const char *dot = strchr(word, '.');

	if (is_rfc(word) || strncmp(word, "draft-", 6) == 0 || strncmp(word, "IPv", 3) == 0)
		return true;
	if (dot != NULL && dot > word && isdigit((unsigned char)dot[1]))
		return true;
	return is_rfc(before) || strcmp(before, "section") == 0 || strcmp(before, "version") == 0 ||
	    strcmp(before, "draft's") == 0;
}

static void
check_word(char *word, const char *before)
{
	if (strpbrk(word, "0123456789") != NULL)
		ck_assert_msg(
		    is_reference(word, before), "doc/deviations.md: no row holds \"%s\" behind \"%s\"", word, before);
}

START_TEST(what_it_says_of_values_the_code_has)
{
	static const char marks[] = " ,;:()`\"";
	char *word, *before = "";

	read_document();
	rows_smcr();
	rows_iwarp();
	rows_sctp();
	for (word = strtok(left, marks); word != NULL; word = strtok(NULL, marks)) {
		while (*word != '\0' && word[strlen(word) - 1] == '.')
			word[strlen(word) - 1] = '\0';
		check_word(word, before);
		before = word;
	}
}

START_TEST(constants_that_it_names_are_there)
{
	static const char *const headers[] = { "lib/wire/cdc.h", "lib/wire/clc.h", "lib/wire/llc.h" };
	static char text[TEXT_MAX];
	unsigned named = 0;

	read_document();
	for (char *at = document; (at = strchr(at, '`')) != NULL; at++) {
		char define[80];
		size_t len = strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
		bool found = false;

		if (len < 3 || at[1 + len] != '`')
			continue;
		snprintf(define, sizeof(define), "#define %.*s ", (int)len, at + 1);
		for (unsigned i = 0; i < sizeof(headers) / sizeof(headers[0]) && !found; i++) {
			read_file(headers[i], text);
			found = strstr(text, define) != NULL;
		}
		ck_assert_msg(found, "doc/deviations.md names %.*s", (int)len, at + 1);
		named++;
	}
	ck_assert_uint_ge(named, 3);
}
