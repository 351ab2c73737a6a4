/* Members of the objects that the daemon reports, a table for each kind of object: name, place in a C struct, form, meaning. JSON
 * is written from the tables, metrics take their values by them, and check_json_fields.c generates doc/json-fields.md. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/control/json_writer.h"

#define FIELD_TEXT_MAX 160

enum field_type {
	FIELD_END,
	/* as they are in the struct */
	FIELD_UINT8,
	FIELD_UINT16,
	FIELD_UINT32,
	FIELD_UINT64,
	FIELD_BOOL,
	FIELD_INT,
	FIELD_INT64,
	/* signed, in another form */
	FIELD_KNOWN, /* uint32_t; 0 is -1 */
	FIELD_MS,    /* int64_t in ns; a negative one is -1 */
	FIELD_US,
	/* texts */
	FIELD_STRING, /* const char *, NULL is "" */
	FIELD_CHARS,  /* char[] */
	FIELD_WORD,   /* an enum; words has a word for each of its values */
	FIELD_TEXT,   /* made by text() from the member, of bytes of the struct and static ones alone */
	/* struct histogram: {"counts":[...],"sum_us":n}, or sum_bytes */
	FIELD_TIMES,
	FIELD_SIZES,
	/* of other values */
	FIELD_OBJECT, /* its members are in the struct at this place */
	FIELD_INLINE, /* the same, but they are members of the object at hand */
	FIELD_ARRAY,  /* struct field_array */
	FIELD_TEXTS,  /* an array of strings, which write() writes */
	FIELD_NUMBERS,
	FIELD_LIST, /* an array that the caller writes object by object */
};

/* Objects in an array. */
struct field_array {
	const void *at;
	unsigned cnt;
};

struct field {
	const char *name;
	enum field_type type;
	unsigned off;
	unsigned size;               /* of an object of FIELD_ARRAY */
	const struct field *members; /* of an object, or of each in an array */
	const char *const *words;
	const char *(*text)(const void *member, char buf[FIELD_TEXT_MAX]);
	void (*write)(struct json_writer *, const void *member);
	const char *meaning;
};

/* Rows of tables: a struct, its member, the name in JSON, what it means. */
/* clang-format off */
#define FIELD_AS(as, s, m, n, mean) .name = (n), .type = (as), .off = offsetof(s, m), .meaning = (mean)
#define FIELD_TYPE(s, m) _Generic(&((s *)0)->m, \
	uint8_t *: FIELD_UINT8, uint16_t *: FIELD_UINT16, uint32_t *: FIELD_UINT32, uint64_t *: FIELD_UINT64, int *: FIELD_INT, \
	int64_t *: FIELD_INT64, bool *: FIELD_BOOL, const char **: FIELD_STRING, char (*)[sizeof(((s *)0)->m)]: FIELD_CHARS)
#define FIELD(s, m, n, mean) { FIELD_AS(FIELD_TYPE(s, m), s, m, n, mean) }
/* clang-format on */

/* Writes members from the first one on, up to a list, whose array is open then. Returns what follows the list, or the end. */
const struct field *field_write(struct json_writer *, const struct field *first, const void *obj);
/* The value of a number or truth value; false when it is negative: not known. */
bool field_number(const struct field *, const void *obj, uint64_t *);
/* The value of a text: buf, or what lives as long as the object. */
const char *field_text(const struct field *, const void *obj, char buf[FIELD_TEXT_MAX]);
bool field_is_text(const struct field *);
/* A member, or "object.member", with its place in obj; false when there is none. */
bool field_find(const struct field *first, const char *path, struct field *);
/* The same of a path of our own tables, which is asserted to be there. */
struct field field_get(const struct field *first, const char *path);
