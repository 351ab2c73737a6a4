/* Members of what is reported; see field.h. */
#include "daemon/control/field.h"

#include <string.h>

#include "base/histogram.h"

static const void *
at(const struct field *f, const void *obj)
{
	return (const char *)obj + f->off;
}

static int64_t
of_ns(const void *p, int64_t unit)
{
	const int64_t ns = *(const int64_t *)p;

	return ns < 0 ? -1 : ns / unit;
}

/* Of a number that may be negative. */
static int64_t
signed_value(const struct field *f, const void *obj)
{
	const void *p = at(f, obj);

	if (f->type == FIELD_INT)
		return *(const int *)p;
	if (f->type == FIELD_INT64)
		return *(const int64_t *)p;
	if (f->type == FIELD_KNOWN)
		return *(const uint32_t *)p != 0 ? (int64_t) * (const uint32_t *)p : -1;
	return of_ns(p, f->type == FIELD_MS ? 1000000 : 1000);
}

static uint64_t
unsigned_value(const struct field *f, const void *obj)
{
	const void *p = at(f, obj);

	if (f->type == FIELD_UINT8)
		return *(const uint8_t *)p;
	if (f->type == FIELD_UINT16)
		return *(const uint16_t *)p;
	if (f->type == FIELD_UINT32)
		return *(const uint32_t *)p;
	if (f->type == FIELD_BOOL)
		return *(const bool *)p;
	return *(const uint64_t *)p;
}

static bool
is_unsigned(const struct field *f)
{
	return f->type >= FIELD_UINT8 && f->type <= FIELD_UINT64;
}

bool
field_is_text(const struct field *f)
{
	return f->type == FIELD_STRING || f->type == FIELD_CHARS || f->type == FIELD_WORD || f->type == FIELD_TEXT;
}

bool
field_number(const struct field *f, const void *obj, uint64_t *n)
{
	if (is_unsigned(f) || f->type == FIELD_BOOL) {
		*n = unsigned_value(f, obj);
		return true;
	}
	const int64_t value = signed_value(f, obj);
	*n = value < 0 ? 0 : (uint64_t)value;
	return value >= 0;
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
field_write_histogram(struct json_writer *jw, const struct field *f, const struct histogram *h)
{
	const bool times = f->type == FIELD_TIMES;

	jw_object(jw, f->name);
	jw_array(jw, "counts");
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		jw_uint(jw, NULL, h->cnt[i]);
	jw_array_end(jw);
	jw_uint(jw, times ? "sum_us" : "sum_bytes", times ? h->sum / 1000 : h->sum);
	jw_object_end(jw);
}

static void
write_array(struct json_writer *jw, const struct field *f, const struct field_array *a)
{
	jw_array(jw, f->name);
	for (unsigned i = 0; i < a->cnt; i++) {
		jw_object(jw, NULL);
		field_write(jw, f->members, (const char *)a->at + (size_t)i * f->size);
		jw_object_end(jw);
	}
	jw_array_end(jw);
}

/* Those that are not one value. */
static void
write_composite(struct json_writer *jw, const struct field *f, const void *obj)
{
	const void *p = at(f, obj);

	if (f->type == FIELD_TIMES || f->type == FIELD_SIZES) {
		field_write_histogram(jw, f, p);
	} else if (f->type == FIELD_ARRAY) {
		write_array(jw, f, p);
	} else if (f->type == FIELD_INLINE) {
		field_write(jw, f->members, p);
	} else if (f->type == FIELD_OBJECT) {
		jw_object(jw, f->name);
		field_write(jw, f->members, p);
		jw_object_end(jw);
	} else {
		jw_array(jw, f->name);
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
			jw_bool(jw, f->name, unsigned_value(f, obj) != 0);
		else if (is_unsigned(f))
			jw_uint(jw, f->name, unsigned_value(f, obj));
		else if (f->type < FIELD_TIMES)
			jw_int(jw, f->name, signed_value(f, obj));
		else
			write_composite(jw, f, obj);
	}
	return f;
}

bool
field_find(const struct field *f, const char *path, struct field *out)
{
	for (; f->type != FIELD_END; f++) {
		const size_t len = f->name != NULL ? strlen(f->name) : 0;
		const char *rest = f->type == FIELD_INLINE ? path : path + len + 1;

		if (f->type != FIELD_INLINE && strcmp(f->name, path) == 0) {
			*out = *f;
			return true;
		}
		if (f->type == FIELD_OBJECT && (strncmp(f->name, path, len) != 0 || path[len] != '.'))
			continue;
		if ((f->type == FIELD_OBJECT || f->type == FIELD_INLINE) && field_find(f->members, rest, out)) {
			out->off += f->off;
			return true;
		}
	}
	return false;
}
