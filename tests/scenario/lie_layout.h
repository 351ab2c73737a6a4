/* Where the fields of CLC, LLC and CDC messages are, of both versions: tables for code that changes valid messages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lie_proto {
	LIE_CLC,
	LIE_LINK, /* LLC and CDC */
};

enum lie_kind {
	LK_PEER_ID,
	LK_GID,
	LK_MAC,
	LK_QPN,
	LK_PSN,
	LK_RKEY,
	LK_VADDR,
	LK_TOKEN,   /* alert token */
	LK_GRANTED, /* of a granted element */
	LK_TICKET,
	LK_LINK,  /* number of a link */
	LK_INDEX, /* of an RMB element */
	LK_COUNT,
	LK_SEQ,
	LK_CURSOR,
	LK_FLAGS,
	LK_CODE, /* size, MTU, reason, version, type */
	LK_LEN,
	LK_PORT,
	LK_SECRET,
	LK_EID,
	LK_OTHER,
	LK_CNT,
};

#define FIELDS_MAX 22
#define FIELD_WIDEST 32

/* In an offset: it counts from the extension of version 2, or from the IP area, which a Proposal says where to find. */
#define V2_EXT 0x8000
#define IP_AREA 0x4000

struct field {
	uint16_t off;
	uint8_t len;
	enum lie_kind kind;
	const char *name;
};

/* What a message of version 2 ends with: so many of one kind. */
struct list_field {
	enum lie_proto proto;
	uint8_t type;
	uint16_t off;
	uint8_t elem_len;
	uint16_t cnt_off;
	uint8_t cnt_len;
	enum lie_kind kind; /* LK_RKEY of 16 bytes: a pair of RTokens */
};

struct layout {
	enum lie_proto proto;
	uint8_t type;
	uint8_t len; /* as the codecs write it; with lists, for a few */
	const char *name;
	struct field f[FIELDS_MAX];
};

/* Those of a version: how many. */
size_t layouts_all(bool v2, const struct layout **first);
/* Of this message; NULL: none. */
const struct layout *layout_of(enum lie_proto, const uint8_t *msg, size_t len);
/* That of this message; NULL: none. */
const struct list_field *layout_list(enum lie_proto, const uint8_t *msg, size_t len);
/* An offset in the message, which may lie behind its end. */
size_t layout_at(uint16_t off, const uint8_t *msg, size_t len);
/* So many of the fields are in the message. */
unsigned layout_fields(const struct layout *, const uint8_t *msg, size_t len);
