/* See steps.h. */
#include "steps.h"

#include <string.h>

bool
steps_begin(struct steps *s, const uint8_t *data, size_t len, uint8_t header[STEPS_HEADER])
{
	if (len < STEPS_HEADER)
		return false;
	memcpy(header, data, STEPS_HEADER);
	s->p = data + STEPS_HEADER;
	s->left = (len - STEPS_HEADER) / STEP_LEN;
	if (s->left > STEPS_MAX)
		s->left = STEPS_MAX;
	return true;
}

bool
steps_next(struct steps *s, struct step *out)
{
	const uint8_t *p;

	if (steps_raw(s, 1, &p) == 0)
		return false;
	*out = (struct step){ p[0], p[1], p[2], p[3], p[4] };
	return true;
}

size_t
steps_raw(struct steps *s, unsigned n, const uint8_t **out)
{
	size_t take = n < s->left ? n : s->left;

	*out = s->p;
	s->p += take * STEP_LEN;
	s->left -= take;
	return take * STEP_LEN;
}
