/* Small lies: fields of a message that is right get another value, one near the right one, an extreme, what an earlier
 * message had there, or one that means something elsewhere: a token, a key, a number, an id of another object. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TWISTS_MAX 4
#define TWIST_OLD 96
#define LORE_MAX 64
#define LORE_WIDEST 16

struct twist {
	uint8_t field; /* below 0x80: of the message's table, modulo; else an offset */
	uint8_t source;
	uint8_t value;
};

struct twists {
	struct twist list[TWISTS_MAX];
	unsigned cnt;
	uint8_t old[8][TWIST_OLD]; /* the last message of each type */
};

/* A zero length ends a table. */
struct twist_field {
	uint8_t off, len;
};

/* Values of one width that mean something. */
struct lore {
	uint8_t v[LORE_MAX][LORE_WIDEST];
	unsigned cnt;
	unsigned len;
};

/* Taken when the width is the one that is looked for. */
void lore_bytes(struct lore *, const void *, unsigned len);
void lore_num(struct lore *, uint64_t, unsigned len);

void twist_add(struct twists *, struct twist);
/* Applied to the message, and forgotten. gather: all values of a width. */
void twist_apply(struct twists *, const struct twist_field *table, unsigned type, uint8_t *msg, size_t len,
    void (*gather)(struct lore *, void *ctx), void *ctx);
