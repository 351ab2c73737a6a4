#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "wire/llc.h"
#include "wire/describe.h"
#include "wire/open.h"

static void
describe(struct span in)
{
	char line[WIRE_DESCRIBE_LEN];
	int n = wire_describe_llc(in, line, sizeof(line));

	FUZZ_CHECK(n > 0 && (size_t)n == strlen(line) && (size_t)n < sizeof(line) - 1);
	n = wire_describe_llc(in, line, 1 + in.len % 80);
	FUZZ_CHECK(n >= 0 && (size_t)n == strlen(line) && (size_t)n <= in.len % 80);
}

/* The message encodes, and what that gives is the same message with the same bytes. */
static void
round_trip(const struct llc_msg *msg, unsigned version, int most)
{
	static uint8_t first[LLC_MAX_SENT_LEN], second[LLC_MAX_SENT_LEN];
	struct llc_msg again;
	int n = llc_encode(msg, version, first, sizeof(first));

	FUZZ_CHECK(n >= LLC_LEN && n <= most);
	FUZZ_CHECK(llc_decode((struct span){ first, (size_t)n }, version, &again) == n);
	FUZZ_CHECK(again.type == msg->type && again.response == msg->response);
	/* A length such as 0x0404 reads the same in both orders. */
	FUZZ_CHECK(version == LLC_VERSION || again.little == msg->little || first[1] == first[2]);
	FUZZ_CHECK(llc_encode(&again, version, second, sizeof(second)) == n);
	FUZZ_CHECK(memcmp(first, second, (size_t)n) == 0);
}

/* Reads all of a list. */
static void
read_lists(const struct llc_msg *msg)
{
	static uint8_t copy[LLC_MAX_PAIRS * LLC_PAIR_LEN];

	if (msg->type == LLC_ADD_LINK)
		for (unsigned i = 0; i < msg->add_link.pair_cnt; i++) {
			struct llc_rkey_pair pair = llc_pair_get(msg->add_link.pairs, i);

			llc_pair_put(copy, i, &pair);
			FUZZ_CHECK(
			    memcmp(copy + i * LLC_PAIR_LEN, msg->add_link.pairs + i * LLC_PAIR_LEN, LLC_PAIR_LEN) == 0);
		}
	if (msg->type == LLC_DELETE_RKEY && msg->delete_rkey.rkeys != NULL)
		for (unsigned i = 0; i < msg->delete_rkey.cnt; i++)
			llc_rkey_put(copy, i, llc_rkey_get(msg->delete_rkey.rkeys, i));
	if (msg->type == LLC_REQUEST_ADD_LINK && msg->request_add_link.gid_cnt > 0)
		memcpy(copy, msg->request_add_link.gids, (size_t)msg->request_add_link.gid_cnt * 16);
}

static void
check(struct span in, unsigned version)
{
	struct llc_msg msg;
	int n = llc_decode(in, version, &msg);

	if (n <= 0) {
		FUZZ_CHECK(n == -EBADMSG || n == -EPROTO || n == -EOPNOTSUPP);
		return;
	}
	FUZZ_CHECK((size_t)n == in.len && n >= LLC_LEN && (version == LLC_VERSION_2 || n == LLC_LEN));
	read_lists(&msg);
	round_trip(&msg, version, n);
	msg.little = !msg.little; /* a host of the other order says the same */
	round_trip(&msg, version, n);
}

/* GRANT and OPEN: no other decoder takes them. */
static void
check_open(struct span in)
{
	struct open_msg msg, again;
	struct llc_msg llc;
	uint8_t buf[OPEN_LEN], second[OPEN_LEN];
	int n = open_decode(in, &msg);

	if (n <= 0) {
		FUZZ_CHECK(n == -EBADMSG || n == -EOPNOTSUPP);
		return;
	}
	FUZZ_CHECK(n == OPEN_LEN && in.len == OPEN_LEN);
	FUZZ_CHECK(llc_decode(in, LLC_VERSION, &llc) == -EOPNOTSUPP);
	FUZZ_CHECK(open_encode(&msg, buf, sizeof(buf)) == OPEN_LEN);
	FUZZ_CHECK(open_decode((struct span){ buf, OPEN_LEN }, &again) == OPEN_LEN);
	FUZZ_CHECK(open_encode(&again, second, sizeof(second)) == OPEN_LEN && memcmp(buf, second, OPEN_LEN) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct span in = { data, len };

	describe(in);
	check(in, LLC_VERSION);
	check(in, LLC_VERSION_2);
	check_open(in);
	return 0;
}
