/* Templates of smcrctl's texts. */
#include <stdlib.h>
#include <time.h>

#include "ctl/template.h"
#include "unit.h"

static json_t *
object(const char *json)
{
	json_t *o = json_loads(json, 0, NULL);

	ck_assert_ptr_nonnull(o);
	return o;
}

static const struct {
	const char *template, *json, *want;
} cases[] = {
	{ "plain", "{}", "plain" },
	{ "", "{}", "" },
	{ "<{a}>", "{\"a\":\"x\"}", "<x>" },
	{ "<{a}>", "{}", "<>" },
	{ "<{a.b.c}>", "{\"a\":{\"b\":{\"c\":\"deep\"}}}", "<deep>" },
	{ "{a}", "{\"a\":[\"x\",7,\"y\"]}", "x,,y" },
	{ "{a:n} {b:n} {c:n} {d:n}", "{\"a\":12,\"b\":-1,\"d\":\"text\"}", "12 - 0 0" },
	{ "{a:n} item{a:s}[a=1?, one]", "{\"a\":[{}]}", "1 item, one" },
	{ "{a+b.c+d:n}", "{\"a\":1,\"b\":{\"c\":2}}", "3" },
	{ "{a:b} {b:b} {a:B} {b:B}", "{\"a\":2048,\"b\":7}", "2K 7 2KiB 7B" },
	{ "{a:t} {a:u} {a:q}", "{\"a\":61000}", "1m01s 61.0ms 0x00ee48" },
	{ "link{a:s} link{b:s}", "{\"a\":1,\"b\":2}", "link links" },
	{ "{a:T} {a:D}", "{\"a\":1763719200120123}", "10:00:00.120123 2025-11-21 10:00:00.120" },
	{ "<{a:4}|{a:-4}>", "{\"a\":\"xy\"}", "<  xy" }, /* '|' ends a text that is in no section */
	{ "<{a:-4}{b:n3}{c:2}>", "{\"a\":\"xy\",\"b\":5}", "<xy    5  >" },
	{ "[a?yes]", "{\"a\":true}", "yes" },
	{ "[a?yes]", "{\"a\":1}", "yes" },
	{ "[a?yes]", "{\"a\":\"x\"}", "yes" },
	{ "[a?yes]", "{\"a\":[0]}", "yes" },
	{ "[a?yes]", "{\"a\":false}", "" },
	{ "[a?yes]", "{\"a\":0}", "" },
	{ "[a?yes]", "{\"a\":-1}", "" },
	{ "[a?yes]", "{\"a\":\"\"}", "" },
	{ "[a?yes]", "{\"a\":[]}", "" },
	{ "[a?yes]", "{\"a\":null}", "" },
	{ "[!a?no]", "{}", "no" },
	{ "[a,b?one]", "{\"b\":1}", "one" },
	{ "[a,!b?one]", "{\"b\":1}", "" },
	{ "[a=x?is][a=-1?minus][!a=x?not]", "{\"a\":\"x\"}", "is" },
	{ "[a=x?is][a=-1?minus][!a=x?not]", "{\"a\":-1}", "minusnot" },
	{ "[a=xy?is][a=?empty]", "{\"a\":\"x\"}", "" },
	{ "[a=?empty]", "{}", "empty" },
	{ "[a=true?yes|a=false?no|nothing]", "{\"a\":true}", "yes" },
	{ "[a=true?yes|a=false?no|nothing]", "{\"a\":false}", "no" },
	{ "[a=true?yes|a=false?no|nothing]", "{}", "nothing" },
	{ "[a~unix:?local][!a~unix:/x?other]", "{\"a\":\"unix:/s\"}", "localother" },
	{ "[a~unix:?local]", "{\"a\":\"unix\"}", "" },
	{ "[a?A|b?B|C]!", "{\"a\":1,\"b\":1}", "A!" },
	{ "[a?A|b?B|C]!", "{\"b\":1}", "B!" },
	{ "[a?A|b?B|C]!", "{}", "C!" },
	{ "[a?[b?both|{c}]|none]!", "{\"a\":1,\"c\":\"c\"}", "c!" },
	{ "[a?[b?both|{c}]|none]!", "{}", "none!" },
	{ "[l*<{x}[y?, {y:n}]>].", "{\"l\":[{\"x\":\"a\"},{\"x\":\"b\",\"y\":2},7]}", "<a><b, 2><>." },
	{ "[l*<{x}>].", "{\"l\":{\"x\":\"a\"}}", "<a>." },
	{ "[l*<{x}>].", "{\"l\":[]}", "." },
	{ "[a?[l*<{x}>]].", "{\"l\":[{}]}", "." },
};

START_LOOP_TEST(templates_are_filled, 0, sizeof(cases) / sizeof(cases[0]))
{
	json_t *o = object(cases[_i].json);

	setenv("TZ", "UTC", 1);
	tzset();
	char *text = template_str(o, cases[_i].template);
	ck_assert_str_eq(text, cases[_i].want);
	free(text);
	json_decref(o);
}

START_TEST(what_is_in_json_is_no_template_and_is_made_clean_for_a_terminal)
{
	json_t *o = object("{\"a\":\"{a}[a?\\u001b]\\n\"}");
	char *raw = template_str(o, "{a}"), *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	template_print(f, o, "{a}");
	fclose(f);
	ck_assert_str_eq(raw, "{a}[a?\x1b]\n");
	ck_assert_str_eq(text, "{a}[a??]\n");
	free(raw);
	free(text);
	json_decref(o);
}

START_TEST(a_missing_member_differs_from_an_empty_one)
{
	json_t *o = object("{\"a\":{\"b\":0},\"c\":\"\"}");

	ck_assert(!template_is_missing(o, "{a.b:n}/{x:n}") && !template_is_missing(o, "{c}"));
	ck_assert(template_is_missing(o, "{x:n}/{c}") && template_is_missing(o, "{a.x+a.b:n}"));
	ck_assert(!template_is_missing(o, "[x?]") && !template_is_missing(o, "") && !template_is_missing(o, "x"));
	ck_assert(template_holds(o, "!c") && template_holds(o, "!a.b,x") && !template_holds(o, "c"));
	json_decref(o);
}
