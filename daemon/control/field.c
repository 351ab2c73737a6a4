/* Members of what is reported; see field.h. */
#include "daemon/control/field.h"

#include <assert.h>
#include <string.h>

#include "base/histogram.h"

static const void *
at(const struct field *f, const void *obj)
{
	return (const char *)obj + f->off;
}

/* A negative number is cast to unsigned. */
static uint64_t
number(const struct field *f, const void *obj)
{
	const void *p = at(f, obj);

	if (f->type == FIELD_UINT8)
		return *(const uint8_t *)p;
	if (f->type == FIELD_UINT16)
		return *(const uint16_t *)p;
	if (f->type == FIELD_UINT32 || f->type == FIELD_KNOWN)
		return f->type == FIELD_KNOWN && *(const uint32_t *)p == 0 ? UINT64_MAX : *(const uint32_t *)p;
	if (f->type == FIELD_BOOL)
		return *(const bool *)p;
	if (f->type == FIELD_INT)
		return (uint64_t) * (const int *)p;
	const int64_t n = *(const int64_t *)p;
	if (f->type == FIELD_MS || f->type == FIELD_US)
		return (uint64_t)(n < 0 ? -1 : n / (f->type == FIELD_MS ? 1000000 : 1000));
	return (uint64_t)n;
}

bool
field_is_text(const struct field *f)
{
	return f->type >= FIELD_STRING && f->type <= FIELD_TEXT;
}

bool
field_number(const struct field *f, const void *obj, uint64_t *n)
{
	*n = number(f, obj);
	if (f->type <= FIELD_BOOL || *n <= INT64_MAX)
		return true;
	*n = 0;
	return false;
}

const char *
field_text(const struct field *f, const void *obj, char buf[FIELD_TEXT_MAX])
{
	const char *s;

	if (f->type == FIELD_TEXT)
		s = f->text(at(f, obj), buf);
	else if (f->type == FIELD_WORD)
		s = f->words[*(const unsigned *)at(f, obj)];
	else
		s = f->type == FIELD_STRING ? *(const char *const *)at(f, obj) : at(f, obj);
	return s != NULL ? s : "";
}

static void
write_object(struct json_writer *jw, const char *name, const struct field *members, const void *obj)
{
	jw_object(jw, name);
	field_write(jw, members, obj);
	jw_object_end(jw);
}

/* What is not a single value. */
static void
write_composite(struct json_writer *jw, const struct field *f, const void *p)
{
	const struct histogram *h = p;
	const struct field_array *a = p;

	if (f->type == FIELD_TIMES || f->type == FIELD_SIZES) {
		const bool times = f->type == FIELD_TIMES;

		jw_object(jw, f->name);
		jw_array(jw, "counts");
		for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
			jw_uint(jw, NULL, h->cnt[i]);
		jw_array_end(jw);
		jw_uint(jw, times ? "sum_us" : "sum_bytes", times ? h->sum / 1000 : h->sum);
		jw_object_end(jw);
	} else if (f->type == FIELD_INLINE) {
		field_write(jw, f->members, p);
	} else if (f->type == FIELD_OBJECT) {
		write_object(jw, f->name, f->members, p);
	} else {
		jw_array(jw, f->name);
		for (unsigned i = 0; f->type == FIELD_ARRAY && i < a->cnt; i++)
			write_object(jw, NULL, f->members, (const char *)a->at + (size_t)i * f->size);
		if (f->type != FIELD_ARRAY)
			f->write(jw, p);
		jw_array_end(jw);
	}
}

const struct field *
field_write(struct json_writer *jw, const struct field *f, const void *obj)
{
	char buf[FIELD_TEXT_MAX];

	for (; f->type != FIELD_END; f++) {
		if (f->type == FIELD_LIST) {
			jw_array(jw, f->name);
			return f + 1;
		}
		if (field_is_text(f))
			jw_string(jw, f->name, field_text(f, obj, buf));
		else if (f->type == FIELD_BOOL)
			jw_bool(jw, f->name, number(f, obj) != 0);
		else if (f->type < FIELD_BOOL)
			jw_uint(jw, f->name, number(f, obj));
		else if (f->type < FIELD_TIMES)
			jw_int(jw, f->name, (int64_t)number(f, obj));
		else
			write_composite(jw, f, at(f, obj));
	}
	return f;
}

bool
field_find(const struct field *f, const char *path, struct field *out)
{
	for (; f->type != FIELD_END; f++) {
		const size_t len = f->name != NULL ? strlen(f->name) : 0;

		if (f->name != NULL && strcmp(f->name, path) == 0) {
			*out = *f;
			return true;
		}
		if (f->type != FIELD_INLINE &&
		    (f->type != FIELD_OBJECT || strncmp(f->name, path, len) != 0 || path[len] != '.'))
			continue;
		if (field_find(f->members, f->type == FIELD_INLINE ? path : path + len + 1, out)) {
			out->off += f->off;
			return true;
		}
	}
	return false;
}

struct field
field_get(const struct field *first, const char *path)
{
	struct field f = { .type = FIELD_END };

	(void)field_find(first, path, &f);
	assert(f.type != FIELD_END);
	return f;
}
