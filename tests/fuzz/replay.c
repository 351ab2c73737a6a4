/*
 * The main() of a fuzz target in normal builds: runs the target over its corpus (tests/fuzz/corpus/<program name>/) and
 * over mutations of it, which are the same in every run. Reports as TAP. With arguments it runs those files alone, to
 * look into a crash that libFuzzer has found.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define MAX_SEEDS 1024
#define MAX_LEN 8192

struct seed {
	uint8_t *data;
	size_t len;
};

static struct seed seeds[MAX_SEEDS];
static size_t seed_cnt;

/* The input that runs now, for the crash handler. */
static char current[256];
static struct seed current_input;

static uint64_t rng_state = 0x9e3779b97f4a7c15;

static uint32_t
rnd(uint32_t below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state >> 32) % below;
}

static void
say(int fd, const void *bytes, size_t len)
{
	if (write(fd, bytes, len) < 0)
		_exit(2);
}

/* Leaves the input in a file, for replay by name. */
static void
on_crash(int sig)
{
	static const char head[] = "# crashed, see replay.crash: ";
	int fd = open("replay.crash", O_WRONLY | O_CREAT | O_TRUNC, 0644);

	say(STDERR_FILENO, head, sizeof(head) - 1);
	say(STDERR_FILENO, current, strlen(current));
	say(STDERR_FILENO, "\n", 1);
	if (fd >= 0)
		say(fd, current_input.data, current_input.len);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* In memory of exactly that length, so that sanitizers see any step beyond it. */
static void
run(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len);

	if (copy == NULL && len > 0)
		abort();
	if (len > 0)
		memcpy(copy, data, len);
	current_input = (struct seed){ copy, len };
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static bool
load(const char *path)
{
	static uint8_t buf[MAX_LEN];
	FILE *f = fopen(path, "rb");
	struct seed *s = &seeds[seed_cnt];

	if (f == NULL || seed_cnt == MAX_SEEDS) {
		if (f != NULL)
			fclose(f);
		return false;
	}
	s->len = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	s->data = malloc(s->len + 1);
	if (s->data == NULL)
		return false;
	memcpy(s->data, buf, s->len);
	seed_cnt++;
	snprintf(current, sizeof(current), "%s", path);
	run(s->data, s->len);
	return true;
}

static bool
load_corpus(const char *target)
{
	const char *top = getenv("top_srcdir");
	struct dirent **list;
	char dir[512], path[1024];
	bool ok = true;

	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s", top != NULL ? top : ".", target);
	int n = scandir(dir, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		if (list[i]->d_name[0] != '.')
			ok = load(path) && ok;
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return ok && seed_cnt > 0;
}

static size_t
mutate_once(uint8_t *b, size_t len)
{
	static const uint8_t edges[] = { 0, 1, 0x7f, 0x80, 0xfe, 0xff };
	const struct seed *other = &seeds[rnd((uint32_t)seed_cnt)];
	size_t at = len > 0 ? rnd((uint32_t)len) : 0;
	size_t n;

	switch (len > 0 ? rnd(7) : 5) {
	case 0:
		b[at] ^= (uint8_t)(1u << rnd(8));
		return len;
	case 1:
		b[at] = edges[rnd(sizeof(edges))];
		return len;
	case 2:
		b[at] = (uint8_t)(b[at] + (rnd(2) ? 1 : 255));
		return len;
	case 3:
		b[at] = (uint8_t)rnd(256);
		return len;
	case 4: /* cut */
		return at;
	case 5: /* the rest is another seed's */
		n = other->len < MAX_LEN - at ? other->len : MAX_LEN - at;
		memcpy(b + at, other->data, n);
		return at + n;
	default: /* a part twice, with all lengths now wrong */
		n = len - at;
		if (n > MAX_LEN - len)
			n = MAX_LEN - len;
		memmove(b + len, b + at, n);
		return len + n;
	}
}

__attribute__((weak)) unsigned
fuzz_mutations(void)
{
	return 10000;
}

static void
run_mutations(void)
{
	static uint8_t b[MAX_LEN];

	for (unsigned i = 0; i < fuzz_mutations(); i++) {
		const struct seed *s = &seeds[i % seed_cnt];
		size_t len = s->len;

		snprintf(current, sizeof(current), "mutation %u", i);
		memcpy(b, s->data, len);
		for (uint32_t steps = 1 + rnd(4); steps > 0; steps--)
			len = mutate_once(b, len);
		run(b, len);
	}
}

int
main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);
	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			if (!load(argv[i]))
				return 1;
		return 0;
	}
	if (!load_corpus(slash != NULL ? slash + 1 : argv[0])) {
		printf("1..1\nnot ok 1 - corpus is missing, empty or too large\n");
		return 0;
	}
	printf("1..2\nok 1 - corpus of %zu\n", seed_cnt);
	run_mutations();
	printf("ok 2 - %u mutations\n", fuzz_mutations());
	return 0;
}
