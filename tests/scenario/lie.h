/*
 * Lies about single messages. A memory of what was said so far, by anybody, and changes of valid messages with values
 * from it: "small-scope" mutations, one or a few fields at a time, a little more or less, zero, the most, or what
 * another message had in a field of that kind (the id of another group, a token, an rkey, a link's number). Works on
 * bytes, because the codecs would refuse.
 *
 * What only both ends of a group know (the token of MPA) is remembered only when the liar is one of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "tests/scenario/lie_layout.h"

#define LIE_MSG_MAX 768   /* of a kept or forged one */
#define LIE_LONG_MAX 8256 /* of one that is made longer */
#define LIE_OLD_MAX 64
#define LIE_VALUES 16
#define LIE_TEXT 120

struct lie_values {
	uint8_t len;
	uint8_t cnt, next;
	uint8_t v[LIE_VALUES][FIELD_WIDEST];
};

struct lie_old {
	enum lie_proto proto;
	bool ours;
	uint16_t len;
	uint8_t msg[LIE_MSG_MAX];
};

struct lie_memory {
	struct rng *rng;
	bool v2; /* most forged messages are of version 2 */
	struct lie_values values[LK_CNT];
	struct lie_old old[LIE_OLD_MAX];
	unsigned old_cnt, old_next;
};

void lie_init(struct lie_memory *, struct rng *, bool v2);
/* A message went by; `ours`: from or to the liar. */
void lie_note(struct lie_memory *, enum lie_proto, const uint8_t *msg, size_t len, bool ours);
/* Changes n fields of the message; says in text what. */
void lie_change(struct lie_memory *, enum lie_proto, uint8_t *msg, size_t len, unsigned n, char text[LIE_TEXT]);
/* Changes field nr (modulo their number). */
void lie_change_one(struct lie_memory *, enum lie_proto, uint8_t *msg, size_t len, unsigned nr, char text[LIE_TEXT]);
/* A message of before: its length, 0 when there is none yet. */
size_t lie_old(struct lie_memory *, enum lie_proto, uint8_t msg[LIE_MSG_MAX]);
/* The last one of this type from or to the liar: its length, 0 when there is none in the memory. */
size_t lie_last(struct lie_memory *, enum lie_proto, uint8_t type, uint8_t msg[LIE_MSG_MAX]);
/* Another host's, of the type that msg has now, in its place: its length, 0 when none is known. */
size_t lie_others(struct lie_memory *, enum lie_proto, uint8_t msg[LIE_MSG_MAX], size_t len);
/* The peer id of a CLC message becomes one that is made of nr. */
void lie_name_peer(uint8_t *msg, size_t len, uint32_t nr);
/* One of a random type whose fields have values of the memory: its length. */
size_t lie_new(struct lie_memory *, enum lie_proto, uint8_t msg[LIE_MSG_MAX]);
/* The same, an LLC message of this type of version 2, as it is on the wire. */
size_t lie_new_llc(struct lie_memory *, uint8_t type, uint8_t msg[LIE_MSG_MAX]);
/* A message of version 2 that ends with a list gets another list, of none to as many elements as there is room for, some of
 * them known from elsewhere, and some twice: its new length. */
size_t lie_list(struct lie_memory *, enum lie_proto, uint8_t *msg, size_t len, size_t cap);
/* An LLC message of version 2 says another length, and has it: up to one more than is allowed. */
size_t lie_stretch(struct lie_memory *, uint8_t *msg, size_t len, size_t cap);
/* The 16-bit numbers of an LLC message of version 2 are in the other byte order. */
void lie_turn_bytes(uint8_t *msg, size_t len);
/* A value of the kind, of len bytes; false when none is known. */
bool lie_value(struct lie_memory *, enum lie_kind, void *out, size_t len);
/* The name of the message. */
const char *lie_name(enum lie_proto, const uint8_t *msg, size_t len);
