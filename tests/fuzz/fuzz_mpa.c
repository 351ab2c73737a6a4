/* MPA start-up: frames, and both roles of the negotiation. First byte: our settings; then a frame. */
#include "iwarp/negotiate.h"

#include <string.h>

#include "fuzz.h"
#include "wire/mpa.h"

static struct neg_config
settings(uint8_t b)
{
	return (struct neg_config){
		.enhanced = b & 1,
		.crc = b & 4,
		.markers = b & 8,
		.depths = {
			.p2p = b & 2,
			.rtr = (b >> 4 & 7) != 0 ? (b >> 4 & 7u) << 1 : RTR_ANY,
			.ird = 16,
			.ird_max = 32,
			.ord = 8,
			.ord_min = b >> 7,
		},
	};
}

/* A frame that was decoded can be encoded, and is the same again. */
static void
round_trip(const struct mpa_frame *f)
{
	uint8_t buf[MPA_FRAME_MAX];
	struct mpa_frame again;
	int n = mpa_frame_encode(f, buf, sizeof(buf));

	FUZZ_CHECK(n > 0);
	FUZZ_CHECK(mpa_frame_decode((struct span){ buf, (size_t)n }, f->kind, &again) == n);
	FUZZ_CHECK(again.flags == f->flags && again.rev == f->rev && again.enh.model == f->enh.model);
	FUZZ_CHECK(again.enh.ird == f->enh.ird && again.enh.ord == f->enh.ord && again.pd.len == f->pd.len);
	FUZZ_CHECK(f->pd.len == 0 || memcmp(again.pd.ptr, f->pd.ptr, f->pd.len) == 0);
}

static void
check_result(const struct neg *n)
{
	switch (n->state) {
	case NEG_DONE:
		FUZZ_CHECK(n->res.depths.ird <= n->cfg.depths.ird_max && n->res.depths.ord <= n->cfg.depths.ord);
		FUZZ_CHECK(n->res.depths.ord >= n->cfg.depths.ord_min);
		FUZZ_CHECK(n->res.crc || !n->cfg.crc);
		break;
	case NEG_REJECTED:
		break;
	case NEG_FAILED:
		FUZZ_CHECK(n->why != NULL);
		FUZZ_CHECK(n->term_code == 0 || (n->term_code >= 5 && n->term_code <= 7));
		break;
	case NEG_IDLE:
	case NEG_REQUESTED:
	case NEG_CHECKED:
		FUZZ_CHECK(0);
	}
}

static void
as_responder(const struct neg_config *cfg, const struct mpa_frame *f)
{
	struct mpa_frame reply;
	struct neg n;

	neg_init(&n, cfg);
	if (neg_request_in(&n, f, &reply) == NEG_CHECKED)
		neg_accept(&n, &reply);
	check_result(&n);
	if (n.state != NEG_FAILED)
		round_trip(&reply);
}

static void
as_initiator(const struct neg_config *cfg, const struct mpa_frame *f)
{
	struct mpa_frame request;
	struct neg n;

	neg_init(&n, cfg);
	neg_request(&n, &request);
	round_trip(&request);
	neg_reply_in(&n, f);
	check_result(&n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mpa_frame f;
	int n;

	if (len < 1)
		return 0;
	struct neg_config cfg = settings(data[0]);
	for (enum mpa_kind kind = MPA_REQUEST; kind <= MPA_REPLY; kind++) {
		n = mpa_frame_decode((struct span){ data + 1, len - 1 }, kind, &f);
		if (n <= 0)
			continue;
		FUZZ_CHECK((size_t)n < len && f.kind == kind);
		round_trip(&f);
		if (kind == MPA_REQUEST)
			as_responder(&cfg, &f);
		else
			as_initiator(&cfg, &f);
	}
	return 0;
}
