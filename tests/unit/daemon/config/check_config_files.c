/* Included files: which are read, in which order, what they may have, and how errors name them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/config/config_int.h"
#include "unit.h"

static char dir[] = "/tmp/check_config_files.XXXXXX";
static char *msgs;
static struct config *cfg;

static void
path_of(char buf[PATH_MAX], const char *name)
{
	snprintf(buf, PATH_MAX, "%s/%s", dir, name);
}

static void
write_file(const char *name, const char *text)
{
	char path[PATH_MAX];

	path_of(path, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

static void
setup(void)
{
	char path[PATH_MAX];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	path_of(path, "conf.d");
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void
teardown(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
	free(msgs);
	config_free(cfg);
}

UNIT_FIXTURE(setup, teardown);

static int
load(void)
{
	char path[PATH_MAX];
	size_t len;

	free(msgs);
	config_free(cfg);
	cfg = NULL;
	path_of(path, "smcrd.conf");
	FILE *err = open_memstream(&msgs, &len);
	int rc = config_load(path, NULL, err, &cfg);
	fclose(err);
	return rc;
}

/* The main file fails, and says this among others, with the directory's name in place of each %. */
static void
load_bad(const char *says)
{
	char text[2 * PATH_MAX] = "";
	size_t n = 0;

	for (const char *p = says; *p != '\0'; p++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, *p == '%' ? "%s" : "%.1s", *p == '%' ? dir : p);
	ck_assert_int_eq(load(), -EINVAL);
	ck_assert_msg(strstr(msgs, text) != NULL, "expected \"%s\" in:\n%s", text, msgs);
}

#define SVC(name, port) "{ name = \"" name "\"; listen = \"127.0.0.1:" port "\"; to = \"127.0.0.1:1\"; }"

START_TEST(services_and_devices_of_all_files)
{
	write_file("smcrd.conf",
	    "\ufeffinclude = \"conf.d/*.conf\"; log_level = \"info\";\n"
	    "egress = ( " SVC("main", "1001") " );");
	write_file("conf.d/20.conf", "ingress = ( " SVC("b", "1003") " ); egress = ( );");
	write_file("conf.d/10.conf", "\ufeffingress = ( " SVC("a", "1002") " );\n"
	                             "devices = ( { type = \"siw\"; address = \"127.0.0.1\"; } );");
	write_file("conf.d/30.conf", "\ufeff// a comment up to the end of the file");
	write_file("conf.d/40.conf~", "nonsense");
	write_file("conf.d/.50.conf", "nonsense");
	ck_assert_msg(load() == 0, "%s", msgs);
	ck_assert_str_eq(msgs, "");
	ck_assert_uint_eq(cfg->service_cnt, 3);
	ck_assert_str_eq(cfg->services[0].name, "a");
	ck_assert_str_eq(cfg->services[1].name, "b");
	ck_assert_str_eq(cfg->services[2].name, "main");
	ck_assert_uint_eq(cfg->device_cnt, 1);
	ck_assert(!cfg->devices_default);

	/* -T has what they say, and names none: it parses again, elsewhere. */
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	config_print(cfg, f);
	fclose(f);
	ck_assert_ptr_null(strstr(text, "include"));
	struct config *again;
	ck_assert_int_eq(config_parse("elsewhere", text, len, 0, stdout, &again), 0);
	ck_assert_uint_eq(again->service_cnt, 3);
	struct config_plan plan;
	config_plan(cfg, again, &plan, stdout);
	ck_assert_uint_eq(plan.added + plan.removed + plan.changed + plan.settings + plan.fixed, 0);
	config_free(again);
	free(text);
}

START_TEST(errors_name_the_file)
{
	write_file("smcrd.conf", "\ninclude = \"conf.d/*.conf\";\negress = ( " SVC("a", "1001") " );");
	write_file("conf.d/1.conf", "\negress = (\n" SVC("b", "1002") "\n}");
	write_file("conf.d/2.conf", "\n\negress = ( " SVC("a", "1001") " );");
	write_file("conf.d/3.conf", "egress = (\n" SVC("c", "1003") ",\n" SVC("c", "1004") ");");
	load_bad("%/conf.d/1.conf:4: syntax error at or just before }\n");
	load_bad("%/conf.d/2.conf:3: egress.name \"a\" is already used in %/smcrd.conf:3\n");
	load_bad(
	    "%/conf.d/2.conf:3: egress.listen 127.0.0.1:1001 is the same as 127.0.0.1:1001 of \"a\" in %/smcrd.conf:3\n");
	load_bad("%/conf.d/3.conf:3: egress.name \"c\" is already used in line 2\n");
	write_file(
	    "conf.d/1.conf", "egress = ( {\nname = 7; } );\negres = ( );\nsmcr = { };\nlog_level = 1;\nincludes = 1;");
	load_bad("%/conf.d/1.conf:2: egress.name must be a string");
	load_bad("%/conf.d/1.conf:1: egress.listen is missing\n");
	load_bad("%/conf.d/1.conf:3: unknown key egres, did you mean \"egress\"?\n");
	load_bad("%/conf.d/1.conf:4: smcr is allowed only in the main file, %/smcrd.conf\n");
	load_bad("%/conf.d/1.conf:5: log_level is allowed only in the main file, %/smcrd.conf\n");
	load_bad("%/conf.d/1.conf:6: unknown key includes\n");
	write_file("conf.d/1.conf", "\na = \"");
	load_bad("%/conf.d/1.conf:2: string without end\n");
	write_file("conf.d/1.conf", "\ufeff\na\u00a0= 1");
	load_bad("%/conf.d/1.conf:2: U+00A0, no-break space is allowed only in comments and \"strings\"\n");
	write_file("conf.d/1.conf", "\xff\xfe=");
	load_bad("%/conf.d/1.conf: is UTF-16: save it as UTF-8\n");
	write_file(
	    "conf.d/1.conf", "egress = ( { name = \"x\"; listen = \"127.0.0.1:9\";\n to = \"no-such.invalid:1\"; } );");
	write_file("conf.d/2.conf", "");
	write_file("conf.d/3.conf", "");
	(void)load();
	ck_assert_msg(strstr(msgs,
	                  config_names_wait() ? "/conf.d/1.conf:2: warning: cannot resolve no-such.invalid: "
	                                      : "/conf.d/1.conf:2: cannot resolve no-such.invalid: ") != NULL,
	    "%s", msgs);
}

START_TEST(no_circles)
{
	write_file("smcrd.conf", "\ninclude = \"*.conf\";");
	load_bad("%/smcrd.conf:2: include has %/smcrd.conf, which is this file itself\n");
	write_file("smcrd.conf", "\ninclude = \"conf.d/*.conf\";");
	write_file("conf.d/1.conf", "\ninclude = \"*.conf\";");
	load_bad("%/conf.d/1.conf:2: include is allowed only in the main file, %/smcrd.conf\n");
}

START_TEST(what_cannot_be_included)
{
	char path[PATH_MAX];

	write_file("smcrd.conf", "\ninclude = \"conf.d/*.conf\";");
	ck_assert_msg(load() == 0, "%s", msgs); /* none is no mistake */
	ck_assert_uint_eq(cfg->service_cnt, 0);
	path_of(path, "conf.d/fifo.conf");
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	load_bad("%/smcrd.conf:2: include has %/conf.d/fifo.conf, which cannot be read: is not a regular file\n");
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	load_bad("%/smcrd.conf:2: include has %/conf.d/fifo.conf, which cannot be read: is a directory\n");
	rmdir(path);
	ck_assert_int_eq(symlink("nowhere", path), 0);
	load_bad("%/smcrd.conf:2: include has %/conf.d/fifo.conf, which cannot be read: No such file or directory\n");
	write_file("smcrd.conf", "\ninclude = \"other.conf\";");
	load_bad("%/smcrd.conf:2: include: there is no file %/other.conf\n");
	write_file("smcrd.conf", "\ninclude = \"conf.e/*.conf\";");
	load_bad(
	    "%/smcrd.conf:2: include: the directory of %/conf.e/*.conf cannot be read: No such file or directory\n");
	write_file("smcrd.conf", "\ninclude = \"conf.d/*\";");
	load_bad("%/smcrd.conf:2: include must end in \".conf\", like \"conf.d/*.conf\", not \"conf.d/*\"\n");
}

/* What is advised about a place, with the directory's name in front left out. */
static const char *
advise(unsigned place)
{
	static char buf[PATH_MAX];
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	ck_assert_ptr_nonnull(f);
	config_advise(cfg, place, f, "so %s", "what");
	fclose(f);
	ck_assert_int_eq(strncmp(buf, dir, strlen(dir)), 0);
	return buf + strlen(dir);
}

START_TEST(advice_names_the_file_and_the_line)
{
	write_file("smcrd.conf",
	    "include = \"conf.d/*.conf\";\n"
	    "egress = ( " SVC("main", "1001") " );");
	write_file("conf.d/10.conf", "\n\ningress = (\n" SVC("a", "1002") " );");
	write_file("conf.d/20.conf",
	    "ingress = (\n{ name = \"r\"; listen = \"127.0.0.1:1003-1004\"; to = \"127.0.0.1:1-2\"; } );\n"
	    "devices = ( { type = \"siw\"; address = \"127.0.0.1\"; } );");
	(void)load();
	ck_assert_msg(cfg != NULL, "%s", msgs);
	ck_assert_str_eq(advise(cfg->services[0].place), "/conf.d/10.conf:4: warning: so what\n");
	ck_assert_str_eq(advise(cfg->services[1].place), "/conf.d/20.conf:2: warning: so what\n");
	ck_assert_str_eq(advise(cfg->services[2].place), "/conf.d/20.conf:2: warning: so what\n");
	ck_assert_str_eq(advise(cfg->services[3].place), "/smcrd.conf:2: warning: so what\n");
	ck_assert_str_eq(advise(cfg->devices[0].place), "/conf.d/20.conf:3: warning: so what\n");
	ck_assert_str_eq(advise(0), "/smcrd.conf: warning: so what\n");

	/* Devices that stay over a reload were in files that the new configuration does not know. */
	struct config *old = cfg;
	cfg = NULL;
	write_file("smcrd.conf", "");
	ck_assert_msg(load() == 0, "%s", msgs);
	ck_assert_int_eq(config_keep_fixed(old, cfg), 0);
	config_free(old);
	ck_assert_str_eq(advise(cfg->devices[0].place), "/smcrd.conf: warning: so what\n");
}

START_TEST(limits)
{
	char name[64], big[] = "conf.d/0.conf", *text = malloc((1 << 20) + 1);

	ck_assert_ptr_nonnull(text);
	write_file("smcrd.conf", "include = \"conf.d/*.conf\";");
	memset(text, ' ', 1 << 20);
	text[1 << 20] = '\0';
	for (; big[7] < '5'; big[7]++)
		write_file(big, text);
	load_bad("%/smcrd.conf:1: include has files of more than 4 MiB\n");
	free(text);
	for (unsigned i = 0; i < CONFIG_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "conf.d/%u.conf", i);
		write_file(name, "");
	}
	load_bad("%/smcrd.conf:1: include has 257 files, more than 256\n");
	snprintf(name, sizeof(name), "%s/conf.d/7.conf", dir);
	unlink(name);
	ck_assert_msg(load() == 0, "%s", msgs);
}

/* The limit of services is for all files. */
START_TEST(services_are_counted_over_all_files)
{
	size_t cap = 128 * 1024, n = 0;
	char *text = malloc(cap);

	ck_assert_ptr_nonnull(text);
	write_file("smcrd.conf", "include = \"conf.d/*.conf\"; egress = ( " SVC("a", "9") ");");
	n += (size_t)snprintf(text + n, cap - n, "egress = (");
	for (unsigned i = 0; i < CONFIG_SERVICES_MAX; i++)
		n += (size_t)snprintf(text + n, cap - n,
		    "%s{ name = \"s%u\"; listen = \"127.0.0.1:%u\"; to = \"127.0.0.1:1\"; }\n", i > 0 ? "," : "", i,
		    1000 + i);
	snprintf(text + n, cap - n, ");");
	write_file("conf.d/1.conf", text);
	load_bad("%/conf.d/1.conf:1: egress has more than 1024 entries\n");
	free(text);
}

START_TEST(the_directory_of_included_files)
{
	static const struct {
		const char *path, *include, *dir;
	} cases[] = {
		{ "/etc/smcrd/smcrd.conf", "conf.d/*.conf", "/etc/smcrd/conf.d/" },
		{ "/etc/smcrd/smcrd.conf", "*/x.conf", "/etc/smcrd/" },
		{ "/etc/smcrd/smcrd.conf", "/srv/a?/*.conf", "/srv/" },
		{ "smcrd.conf", "conf.d/*.conf", "conf.d/" },
		{ "smcrd.conf", "*.conf", "." },
		{ "smcrd.conf", "x.conf", "." },
	};
	char buf[PATH_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config c = { 0 };

		ck_assert_int_eq(config_include_dir(&c, buf), -ENOENT);
		strcpy(c.path, cases[i].path);
		strcpy(c.include, cases[i].include);
		ck_assert_int_eq(config_include_dir(&c, buf), 0);
		ck_assert_str_eq(buf, cases[i].dir);
	}
}
