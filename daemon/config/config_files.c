/* The files of a configuration: the main one, and included ones, which may have only services and devices. Each is a
 * libconfig tree; a place in messages is the number of the file above 16 bits of line. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/config_int.h"

#define FILE_MAX (1u << 20)
#define FILES_SIZE_MAX (4u << 20) /* all together */
#define SHOW_MAX 64               /* of a line */

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

unsigned
config_place_of(const config_setting_t *s)
{
	const config_setting_t *root = s;

	while (config_setting_parent(root) != NULL)
		root = config_setting_parent(root);
	return config_place((unsigned)(uintptr_t)config_setting_get_hook(root), config_setting_source_line(s));
}

unsigned
config_line(const config_setting_t *group, const char *name)
{
	const config_setting_t *s = config_member(group, name);

	if (s == NULL)
		s = group;
	return s != NULL ? config_place_of(s) : 0;
}

const config_setting_t *
config_member(const config_setting_t *group, const char *name)
{
	return group != NULL ? config_setting_get_member(group, name) : NULL;
}

/* libconfig's error with the line where it stopped: the missing part may be in the line before. */
static void
report_syntax(struct config_build *b, const config_t *tree, const char *text)
{
	const int line = config_error_line(tree);
	const char *what = config_error_text(tree);
	char shown[SHOW_MAX];
	size_t len;

	for (int i = 1; i < line && strchr(text, '\n') != NULL; i++)
		text = strchr(text, '\n') + 1;
	text += strspn(text, " \t");
	len = strcspn(text, "\r\n");
	snprintf(shown, sizeof(shown), "%.*s", (int)len, text);
	for (char *p = shown; *p != '\0'; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
	config_error(b, config_place(b->reading, (unsigned)line), "%s at or just before %s%s",
	    strstr(what, "mismatched element") != NULL ? "a list in [ ] has strings or numbers, not both:" : what,
	    len > 0 ? shown : "the end of the file", len >= sizeof(shown) ? "..." : "");
}

/* 0, or -EINVAL with errors reported. The text ends with a NUL at text[len]; a byte order mark before it is skipped. */
static int
parse(struct config_build *b, const char *text, size_t len)
{
	struct config_file *file = &b->files[b->file_cnt];
	unsigned errors = b->errors;
	size_t mark_len = strncmp(text, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;

	text += mark_len;
	len -= mark_len;
	config_init(&file->tree);
	b->reading = b->file_cnt++;
	config_scan(b, text, len);
	if (b->errors == errors && config_read_string(&file->tree, text) != CONFIG_TRUE)
		report_syntax(b, &file->tree, text);
	if (b->errors > errors)
		return -EINVAL;
	file->root = config_root_setting(&file->tree);
	config_setting_set_hook(config_root_setting(&file->tree), (void *)(uintptr_t)b->reading);
	return 0;
}

int
config_files_open(struct config_build *b, const char *text, size_t len)
{
	b->files = calloc(CONFIG_FILES_MAX, sizeof(*b->files));
	b->cfg->included = calloc(CONFIG_FILES_MAX, sizeof(*b->cfg->included));
	if (b->files == NULL || b->cfg->included == NULL) {
		config_error(b, 0, "out of memory");
		return -ENOMEM;
	}
	return parse(b, text, len);
}

void
config_files_close(struct config_build *b)
{
	for (unsigned i = 0; i < b->file_cnt; i++)
		config_destroy(&b->files[i].tree);
	free(b->files);
}

char *
config_file_read(const char *path, bool included, size_t *len, const char **why)
{
	/* The main file may be a pipe; an included one may not, as opening it could block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | (included ? O_NONBLOCK : 0));
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	char *text = NULL;
	struct stat st;

	*why = NULL;
	if (f == NULL) {
		*why = strerror(errno);
	} else if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		*why = "is a directory";
	} else if (included && !S_ISREG(st.st_mode)) {
		*why = "is not a regular file";
	} else if ((text = malloc(FILE_MAX + 2)) == NULL) {
		*why = "out of memory";
	} else {
		*len = fread(text, 1, FILE_MAX + 1, f);
		*why = ferror(f) ? strerror(errno) : *len > FILE_MAX ? "larger than 1 MiB" : NULL;
	}
	if (f != NULL)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	if (*why != NULL) {
		free(text);
		return NULL;
	}
	/* libconfig (1.5) rejects a comment that ends with the file. */
	if (*len > 0 && text[*len - 1] != '\n')
		text[(*len)++] = '\n';
	text[*len] = '\0';
	return text;
}

/* The pattern relative to the directory of the main file. 0 or -ENAMETOOLONG. */
static int
full_pattern(const struct config *cfg, char *buf)
{
	const char *slash = strrchr(cfg->path, '/');
	int dir_len = cfg->include[0] != '/' && slash != NULL ? (int)(slash + 1 - cfg->path) : 0;

	return snprintf(buf, PATH_MAX, "%.*s%s", dir_len, cfg->path, cfg->include) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int
config_include_dir(const struct config *cfg, char *buf)
{
	size_t len;

	if (cfg->include[0] == '\0' || full_pattern(cfg, buf) != 0)
		return -ENOENT;
	len = strcspn(buf, "*?[\\");
	while (len > 0 && buf[len - 1] != '/')
		len--;
	strcpy(buf + len, len > 0 ? "" : ".");
	return 0;
}

static bool
same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static void
include_one(struct config_build *b, unsigned place, const char *path, size_t *size)
{
	const char *why;
	size_t len = 0;
	char *text;

	if (same_file(path, b->path)) {
		config_error(b, place, "include has %s, which is this file itself", path);
		return;
	}
	text = config_file_read(path, true, &len, &why);
	*size += len;
	if (text == NULL)
		config_error(b, place, "include has %s, which cannot be read: %s", path, why);
	else if (*size > FILES_SIZE_MAX)
		config_error(b, place, "include has files of more than %u MiB", FILES_SIZE_MAX >> 20);
	else if ((b->cfg->included[b->cfg->included_cnt] = strdup(path)) == NULL)
		config_error(b, place, "out of memory");
	else {
		b->cfg->included_cnt++;
		(void)parse(b, text, len);
	}
	free(text);
}

void
config_files_include(struct config_build *b)
{
	const unsigned place = config_line(b->files[0].root, "include");
	char pattern[PATH_MAX];
	glob_t found = { 0 };
	size_t size = 0;
	int rc;

	if (b->cfg->include[0] == '\0')
		return;
	if (full_pattern(b->cfg, pattern) != 0) {
		config_error(b, place, "include is too long");
		return;
	}
	errno = 0;
	rc = glob(pattern, GLOB_ERR, NULL, &found);
	if (rc == GLOB_NOMATCH && strpbrk(b->cfg->include, "*?[") == NULL)
		config_error(b, place, "include: there is no file %s", pattern);
	else if (rc == GLOB_NOSPACE)
		config_error(b, place, "out of memory");
	else if (rc == GLOB_ABORTED)
		config_error(b, place, "include: the directory of %s cannot be read: %s", pattern,
		    errno != 0 ? strerror(errno) : "unknown error");
	else if (rc == 0 && found.gl_pathc > CONFIG_FILES_MAX - 1)
		config_error(b, place, "include has %zu files, more than %u", found.gl_pathc, CONFIG_FILES_MAX - 1);
	for (size_t i = 0; rc == 0 && i < found.gl_pathc && found.gl_pathc < CONFIG_FILES_MAX; i++)
		include_one(b, place, found.gl_pathv[i], &size);
	globfree(&found);
}
