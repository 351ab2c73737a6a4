/* Text fields of CLC messages, and the words of codes; see clc.h. */
#include "wire/clc.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

/* -- enterprise ids and host names -- */

static bool
is_capital_or_digit(uint8_t b)
{
	return (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9');
}

bool
clc_eid_is_valid(const struct clc_eid *eid)
{
	size_t len = CLC_EID_LEN;

	while (len > 0 && eid->b[len - 1] == ' ')
		len--;
	if (len == 0 || !is_capital_or_digit(eid->b[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_capital_or_digit(eid->b[i]) && eid->b[i] != '-' && (eid->b[i] != '.' || eid->b[i - 1] == '.'))
			return false;
	return true;
}

int
clc_eid_parse(const char *text, struct clc_eid *out)
{
	struct clc_eid eid;
	size_t len = strlen(text);

	if (len == 0 || len > sizeof(eid.b) || text[len - 1] == ' ')
		return -EINVAL;
	memset(eid.b, ' ', sizeof(eid.b));
	memcpy(eid.b, text, len);
	if (!clc_eid_is_valid(&eid))
		return -EINVAL;
	*out = eid;
	return 0;
}

void
clc_field_str(const uint8_t field[CLC_FIELD_LEN], char text[CLC_FIELD_LEN + 1])
{
	size_t len = CLC_FIELD_LEN;

	while (len > 0 && (field[len - 1] == ' ' || field[len - 1] == '\0'))
		len--;
	for (size_t i = 0; i < len; i++)
		text[i] = (char)(field[i] > ' ' && field[i] < 0x7f ? field[i] : '?');
	text[len] = '\0';
}

const struct clc_eid *
clc_eid_find(const struct clc_eid *eids, size_t cnt, const struct clc_eid *wanted)
{
	for (size_t i = 0; i < cnt; i++)
		if (memcmp(eids[i].b, wanted->b, sizeof(wanted->b)) == 0)
			return &eids[i];
	return NULL;
}

const struct clc_eid *
clc_eid_common(const struct clc_eid *ours, size_t our_cnt, const struct clc_eid *theirs, size_t their_cnt)
{
	for (size_t i = 0; i < our_cnt; i++)
		if (clc_eid_find(theirs, their_cnt, &ours[i]) != NULL)
			return &ours[i];
	return NULL;
}

/* -- codes in words -- */

const char *
clc_os_str(unsigned os)
{
	static const char *const names[] = {
		"unknown", [CLC_OS_ZOS] = "z/OS", [CLC_OS_LINUX] = "Linux", [CLC_OS_AIX] = "AIX"
	};

	return names[os < sizeof(names) / sizeof(names[0]) ? os : 0];
}

#define DIAG_ROW(name, number, words) { number, words },

const char *
clc_diag_str(uint32_t diag)
{
	static const struct str_word diags[] = { CLC_DIAGS(DIAG_ROW) };

	return str_word(diags, sizeof(diags) / sizeof(diags[0]), diag, "unknown code");
}

const char *
clc_server_str(unsigned server)
{
	static const struct str_word servers[] = { CLC_SERVERS(DIAG_ROW) };

	return str_word(servers, sizeof(servers) / sizeof(servers[0]), server, servers[CLC_SERVER_DOWN].text);
}

/* -- transports -- */

const char *
clc_transport_str(unsigned bit)
{
	static const char *const names[] = {
		[CLC_TRANSPORT_ROCE] = "roce",
		[CLC_TRANSPORT_IWARP] = "iwarp",
		[CLC_TRANSPORT_IWARP_SCTP] = "iwarp-sctp",
		[CLC_TRANSPORT_IWARP_SCTP_UDP] = "iwarp-sctp-udp",
		[CLC_TRANSPORT_IWARP_TLS] = "iwarp-tls",
	};

	return bit < sizeof(names) / sizeof(names[0]) ? names[bit] : NULL;
}

void
clc_transports_str(unsigned transports, char text[CLC_TRANSPORTS_STR_MAX])
{
	text[0] = '\0';
	for (unsigned bit = 1; bit < CLC_TRANSPORT_PREWARM; bit <<= 1) {
		const char *word = (transports & bit) != 0 ? clc_transport_str(bit) : NULL;

		if (word != NULL)
			str_append(text, CLC_TRANSPORTS_STR_MAX, "%s%s", text[0] != '\0' ? "," : "", word);
	}
}
