/* Simulated TCP: two byte streams with latency, segments cut at random, bounded windows, urgent bytes in their place,
 * FIN and RST. Each end has one user, woken at each change, which must then check everything. */
#pragma once

#include "tests/scenario/world.h"

struct stcp;
struct stcp_end;

struct stcp_user {
	void (*wake)(void *arg);
	void *arg;
};

/* The network between two hosts. */
struct stcp_net {
	int64_t delay_min_ns;
	int64_t delay_max_ns;
	uint32_t window;   /* receive buffer of an end */
	uint32_t segment;  /* longest piece that travels at once */
	bool rst_discards; /* a RST throws away what its receiver has not read yet */
};

/* A listener takes the end of a connect and returns its user's data in *user, or refuses. */
struct stcp_listener {
	bool (*accept)(void *arg, struct stcp_end *, void *tag, struct stcp_user *user);
	void *arg;
};

enum stcp_state {
	STCP_CONNECTING,
	STCP_OPEN,
	STCP_REFUSED,
	STCP_RESET, /* RST came */
};

/* Starts connecting; tag is handed to the listener and kept for stcp_tag of both ends. */
struct stcp_end *stcp_connect(
    struct world *, const struct stcp_net *, const struct stcp_listener *, void *tag, struct stcp_user);
void *stcp_tag(const struct stcp_end *);
enum stcp_state stcp_state(const struct stcp_end *);

/* How many bytes send would take now; after 0 the user is woken when there is room. */
size_t stcp_space(struct stcp_end *);
/* Takes what the window allows; with urgent, when all was taken, the last byte is urgent. */
size_t stcp_send(struct stcp_end *, const void *buf, size_t len, bool urgent);
/* Bytes in order, stopping before an urgent one, which comes alone. 0: none now. */
size_t stcp_recv(struct stcp_end *, void *buf, size_t cap, bool *urgent);
size_t stcp_unread(const struct stcp_end *);
/* The peer's FIN is next: everything before it was read. */
bool stcp_eof(const struct stcp_end *);
/* FIN behind all data. Once. */
void stcp_shutdown(struct stcp_end *);
bool stcp_is_shut(const struct stcp_end *);

/* The user releases its end, which is then invalid. With unread data, or when more comes, RST. */
void stcp_close(struct stcp_end *);
/* RST. */
void stcp_abort(struct stcp_end *);
/* The network breaks the connection: both ends get RST. */
void stcp_kill(struct stcp_end *);
