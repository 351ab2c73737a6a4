/*
 * librdmacm for tests: takes its place at link time, on the cards of
 * fake_ibverbs.h that are iWARP cards. Card n has the addresses 10.0.n.1 and
 * 10.0.n.2. As with the kernel, an id that is being connected, and its QP,
 * cannot be destroyed without waiting: an attempt fails the test.
 */
#pragma once

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "fake_ibverbs.h"

struct fake_cm_state {
	int channel_err, create_err, bind_err, listen_err, route_err, accept_err; /* errno of the call */
	unsigned busy_ports; /* so many calls to listen find their port in use */
	int addr_event_err;  /* status of the event: address not found */
	int route_event_err;
	bool hold_addr;        /* no event of resolving comes */
	bool connect_waits;    /* rdma_connect waits for fake_cm_go */
	bool lose_requests;    /* they do not arrive */
	bool lose_first;       /* the passive side never hears that it is connected */
	bool foreign_dev;      /* addresses are on another card */
	int unreachable;       /* the request ends with this status */
	unsigned reply_spoilt; /* private data of the Reply: 1 not ours, 2 from another QP, 3 no receives, 4 none */
	uint8_t ord;           /* as the passive side reads it */
	/* in use */
	int id_cnt, channel_cnt;
	unsigned rejects, accepts, connects, disconnects;
};

extern struct fake_cm_state fake_cm;

void fake_cm_reset(void);
void fake_cm_check_clean(void);
/* Both called by fake_ibverbs.c. */
bool fake_cm_run(void);
bool fake_cm_holds(uint32_t qpn);

/* A request that is no program's: to the listening port of card n. Its handle, for what became of it. */
int fake_cm_request(unsigned dev, const void *pd, uint8_t len);
/* -1 not answered, 0 accepted, 1 rejected, with the byte of the private data that is the verdict. */
int fake_cm_answer(int handle, unsigned *verdict);
/* It goes away. */
void fake_cm_request_close(int handle);
/* How many wait in rdma_connect, after up to 20 s at least n; letting all go with this errno. */
unsigned fake_cm_waiting(unsigned n);
void fake_cm_go(int err);
/* An event of the id that listens on card n. */
void fake_cm_listen_event(unsigned dev, enum rdma_cm_event_type);
/* The same of all its other ids. */
void fake_cm_event_all(unsigned dev, enum rdma_cm_event_type);
