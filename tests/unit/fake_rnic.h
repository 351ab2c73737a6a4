/* A device that only remembers: what was posted, whether confirm was asked for. The test says what there is room for,
 * and when which requests complete or fail. Nothing moves by itself. */
#pragma once

#include "rnic/rnic.h"

#define FAKE_WRS 4096
#define FAKE_MRS 64

struct fake_wr {
	struct rnic_send_wr wr;
	uint8_t *data; /* a copy of what was gathered when it was posted */
	uint32_t len;
};

struct fake_rnic {
	struct rnic_dev dev;
	struct rnic_pd pd;
	struct rnic_qp qp;
	struct fake_wr posted[FAKE_WRS];
	unsigned cnt;
	struct rnic_credits room;
	int post_err;     /* the next posts fail with it */
	unsigned post_ok; /* after so many that succeed */
	int reg_err;      /* registrations fail with it */
	unsigned confirms;
	struct rnic_mr *mr[FAKE_MRS];
	unsigned mr_cnt;
	uint32_t next_key;
};

void fake_init(struct fake_rnic *);
void fake_fini(struct fake_rnic *);
/* Where [addr, addr + len) of the region lies; the test fails when it is not inside. */
uint8_t *fake_at(struct fake_rnic *, uint32_t rkey, uint64_t addr, uint32_t len);
