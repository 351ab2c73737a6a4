#include <string.h>

#include "daemon/config/config_int.h"
#include "fuzz.h"

/* libconfig 1.5 loses the last string before a syntax error. */
const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:libconfig.so\n";
}

static char *
print(const struct config *cfg)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	FUZZ_CHECK(f != NULL);
	config_print(cfg, f);
	FUZZ_CHECK(fclose(f) == 0);
	return text;
}

/* The canonical form parses to what prints the same, and differs in nothing. */
static void
check_canonical(const struct config *cfg)
{
	char *once = print(cfg), *second = NULL;
	struct config *again = NULL;
	struct config_plan plan;
	size_t len;
	FILE *f = open_memstream(&second, &len);

	FUZZ_CHECK(f != NULL);
	FUZZ_CHECK(config_parse("again", once, strlen(once), CONFIG_NO_LOOKUP, f, &again) == 0);
	rewind(f);
	char *twice = print(again);
	FUZZ_CHECK(strcmp(once, twice) == 0);
	config_plan(cfg, again, &plan, f);
	FUZZ_CHECK(ftell(f) == 0);
	FUZZ_CHECK(fclose(f) == 0);
	free(once);
	free(twice);
	free(second);
	config_free(again);
}

/* Any bytes as a configuration file, without name resolution. A refusal names the file in its first message. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), *msgs = NULL;
	struct config *cfg = NULL;
	size_t msgs_len;
	FILE *err = open_memstream(&msgs, &msgs_len);

	FUZZ_CHECK(text != NULL && err != NULL);
	memcpy(text, data, len);
	text[len] = '\0';
	int rc = config_parse("fuzz.conf", text, len, CONFIG_NO_LOOKUP, err, &cfg);
	FUZZ_CHECK(fclose(err) == 0);
	FUZZ_CHECK((rc == 0) == (cfg != NULL));
	if (rc != 0)
		FUZZ_CHECK(strncmp(msgs, "fuzz.conf:", 10) == 0);
	else
		check_canonical(cfg);
	config_free(cfg);
	free(text);
	free(msgs);
	return 0;
}
