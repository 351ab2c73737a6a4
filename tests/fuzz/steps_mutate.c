/* libFuzzer's mutations of programs of steps (steps.h): whole steps come, go and move, or operands change. */
#include <string.h>

#include "steps.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t len, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(
    const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *out, size_t max, unsigned seed);

static uint64_t state;

static uint32_t
below(size_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n == 0 ? 0 : (uint32_t)(state >> 32) % (uint32_t)n;
}

static void
seed_with(unsigned seed)
{
	state = 0x9e3779b97f4a7c15ULL ^ ((uint64_t)seed << 20 | 1);
	(void)below(2);
	(void)below(2);
}

static size_t
step_cnt(size_t len)
{
	return (len - STEPS_HEADER) / STEP_LEN;
}

static uint8_t *
at(uint8_t *data, size_t step)
{
	return data + STEPS_HEADER + step * STEP_LEN;
}

static size_t
len_of(size_t steps)
{
	return STEPS_HEADER + steps * STEP_LEN;
}

/* Room for n steps before step i; false when there is none. */
static bool
open_gap(uint8_t *data, size_t cnt, size_t i, size_t n, size_t max)
{
	if (len_of(cnt + n) > max || cnt + n > STEPS_MAX)
		return false;
	memmove(at(data, i + n), at(data, i), (cnt - i) * STEP_LEN);
	return true;
}

static size_t
insert_random(uint8_t *data, size_t cnt, size_t max)
{
	size_t i = below(cnt + 1);

	if (!open_gap(data, cnt, i, 1, max))
		return cnt;
	for (unsigned k = 0; k < STEP_LEN; k++)
		at(data, i)[k] = (uint8_t)(below(2) ? below(16) : below(256));
	return cnt + 1;
}

/* A few steps once more, somewhere. */
static size_t
repeat(uint8_t *data, size_t cnt, size_t max)
{
	uint8_t copy[4 * STEP_LEN];
	size_t from = below(cnt), to = below(cnt + 1), n = 1 + below(4);

	if (n > cnt - from)
		n = cnt - from;
	memcpy(copy, at(data, from), n * STEP_LEN);
	if (!open_gap(data, cnt, to, n, max))
		return cnt;
	memcpy(at(data, to), copy, n * STEP_LEN);
	return cnt + n;
}

static size_t
take_out(uint8_t *data, size_t cnt)
{
	size_t from = below(cnt), n = 1 + below(3);

	if (n > cnt - from)
		n = cnt - from;
	memmove(at(data, from), at(data, from + n), (cnt - from - n) * STEP_LEN);
	return cnt - n;
}

static void
swap(uint8_t *data, size_t cnt)
{
	uint8_t tmp[STEP_LEN], *a = at(data, below(cnt)), *b = at(data, below(cnt));

	memcpy(tmp, a, STEP_LEN);
	memmove(a, b, STEP_LEN);
	memcpy(b, tmp, STEP_LEN);
}

static void
change_operand(uint8_t *data, size_t cnt)
{
	uint8_t *b = at(data, below(cnt)) + below(STEP_LEN);

	switch (below(4)) {
	case 0:
		*b = (uint8_t)below(256);
		break;
	case 1:
		*b = (uint8_t)below(16);
		break;
	case 2:
		*b = (uint8_t)(*b + (below(2) ? 1 : 255));
		break;
	default:
		*b ^= (uint8_t)(1u << below(8));
		break;
	}
}

static size_t
mutate_once(uint8_t *data, size_t cnt, size_t max)
{
	unsigned how = below(20);

	if (how == 0) {
		data[below(STEPS_HEADER)] = (uint8_t)below(256);
		return cnt;
	}
	if (cnt == 0 || how < 5)
		return insert_random(data, cnt, max);
	if (how < 8)
		return repeat(data, cnt, max);
	if (how < 10)
		return take_out(data, cnt);
	if (how < 12)
		swap(data, cnt);
	else if (how < 14)
		(void)LLVMFuzzerMutate(at(data, below(cnt)), STEP_LEN, STEP_LEN);
	else
		change_operand(data, cnt);
	return cnt;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max, unsigned seed)
{
	seed_with(seed);
	if (max < STEPS_HEADER)
		return len;
	if (len < STEPS_HEADER) {
		memset(data + len, 0, STEPS_HEADER - len);
		len = STEPS_HEADER;
	}
	size_t cnt = step_cnt(len);
	for (unsigned n = 1 + below(4); n > 0; n--)
		cnt = mutate_once(data, cnt, max);
	return len_of(cnt);
}

/* The beginning of one and the end of the other. */
size_t
LLVMFuzzerCustomCrossOver(
    const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *out, size_t max, unsigned seed)
{
	seed_with(seed);
	if (a_len < STEPS_HEADER || b_len < STEPS_HEADER || a_len > max)
		return 0;
	size_t head = below(step_cnt(a_len) + 1);
	size_t from = below(step_cnt(b_len) + 1);
	size_t tail = step_cnt(b_len) - from;
	if (len_of(head + tail) > max)
		tail = (max - len_of(head)) / STEP_LEN;
	memcpy(out, a, len_of(head));
	memcpy(out + len_of(head), b + len_of(from), tail * STEP_LEN);
	return len_of(head + tail);
}
