/* Files: Landlock leaves what a running daemon opens. Rules name directories, because files are replaced (resolv.conf,
 * the configuration) and a rule applies to the existing inode. Open descriptors stay usable. No path can be executed,
 * and only devices can be written. The constants are the kernel's, as headers may be older than the kernel. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/confine/confine_parts.h"

/* The same on all architectures. */
#define NR_CREATE_RULESET 444
#define NR_ADD_RULE 445
#define NR_RESTRICT_SELF 446

#define CREATE_VERSION 1 /* flag: only return the version */
#define RULE_PATH 1

enum {
	FS_WRITE = 1 << 1,
	FS_READ = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_SOCK = 1 << 9,
	FS_IOCTL_DEV = 1 << 15,
};

/* Rights to files by version of Landlock: the kernel refuses these except where a rule allows them. */
#define FS_ALL_V1 0x1fffu
#define FS_ALL_V2 (FS_ALL_V1 | 1u << 13) /* rename to another directory */
#define FS_ALL_V3 (FS_ALL_V2 | 1u << 14) /* truncate */
#define FS_ALL_V5 (FS_ALL_V3 | (unsigned)FS_IOCTL_DEV)
#define FS_OF_FILES ((unsigned)(FS_WRITE | FS_READ | FS_IOCTL_DEV) | 1u << 14) /* allowed in a rule for a file */

#define SCOPE_ABSTRACT_UNIX 1u
#define SCOPE_SIGNAL 2u

struct ruleset_attr {
	uint64_t fs;
	uint64_t net;    /* version 4 */
	uint64_t scoped; /* version 6 */
};

struct path_attr {
	uint64_t fs;
	int32_t fd;
} __attribute__((packed)); /* the kernel's layout */

#define LOOK (FS_READ | FS_READ_DIR)
#define SOCKETS (LOOK | FS_REMOVE_FILE | FS_MAKE_SOCK) /* they are removed at the end, and a reload makes others */

static const char *const looked_at[] = {
	/* The resolver at a reload: resolv.conf, nsswitch.conf, hosts; the driver lists of libibverbs. */
	"/etc",
	/* Targets of the link resolv.conf. */
	"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/connman",
	/* Caches of name services. */
	"/run/nscd", "/var/cache/nscd", "/var/lib/sss",
	/* Modules of the name service and drivers of cards, loaded when needed; the time zone of log lines. */
	"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo",
	/* Memory of the process in smcrctl status; files that the C library reads. */
	"/proc/self", "/proc/sys", "/proc/meminfo", "/proc/stat", "/proc/cpuinfo",
	/* Cards, processors, interfaces. */
	"/sys"
};

static const char cards_dir[] = "/dev/infiniband";

struct rules {
	int fd;
	unsigned handled;
	int rc; /* the first error */
};

/* A missing path needs no rule. */
static void
allow(struct rules *r, const char *path, unsigned rights)
{
	struct path_attr attr = { .fd = open(path, O_PATH | O_CLOEXEC) };
	struct stat st;

	if (attr.fd < 0)
		return;
	if (fstat(attr.fd, &st) != 0 || !S_ISDIR(st.st_mode))
		rights &= FS_OF_FILES;
	attr.fs = rights & r->handled;
	if (syscall(NR_ADD_RULE, r->fd, RULE_PATH, &attr, 0) != 0 && r->rc == 0)
		r->rc = -errno;
	close(attr.fd);
}

/* The directory of the file, if it has a name; in the root directory, the file alone. */
static void
allow_around(struct rules *r, const char *file, unsigned rights)
{
	char copy[PATH_MAX];

	if (file[0] == '\0' || snprintf(copy, sizeof(copy), "%s", file) >= (int)sizeof(copy))
		return;
	const char *dir = dirname(copy);
	allow(r, strcmp(dir, "/") == 0 ? file : dir, rights);
}

/* A file that a reload reads: by its name and, for a symbolic link, also by its present target. */
static void
allow_reload(struct rules *r, const char *file)
{
	char real[PATH_MAX];

	allow_around(r, file, LOOK);
	if (realpath(file, real) != NULL && strcmp(real, file) != 0)
		allow_around(r, real, LOOK);
}

/* Cards may be plugged in later, and the first one creates their directory. */
static const char *
cards_path(const struct config *cfg)
{
	if (access(cards_dir, F_OK) == 0)
		return cards_dir;
	return config_has_verbs(cfg) ? "/dev" : NULL;
}

static int
restrict_self(const struct config *cfg, int abi)
{
	const char *notify = getenv("NOTIFY_SOCKET");
	/* No signals to processes outside, and none of their abstract sockets except the one from systemd. */
	struct ruleset_attr attr = {
		.fs = abi >= 5 ? FS_ALL_V5
		    : abi >= 3 ? FS_ALL_V3
		    : abi == 2 ? FS_ALL_V2
		               : FS_ALL_V1,
		.scoped = SCOPE_SIGNAL | (notify != NULL && notify[0] == '@' ? 0 : SCOPE_ABSTRACT_UNIX),
	};
	size_t size = abi >= 6 ? sizeof(attr) : offsetof(struct ruleset_attr, net);
	struct rules r = { .fd = (int)syscall(NR_CREATE_RULESET, &attr, size, 0), .handled = (unsigned)attr.fs };
	const char *cards = cards_path(cfg);
	char real[PATH_MAX];

	if (r.fd < 0)
		return -errno;
	for (unsigned i = 0; i < sizeof(looked_at) / sizeof(looked_at[0]); i++)
		allow(&r, looked_at[i], LOOK);
	allow(&r, "/dev/null", LOOK | FS_WRITE);
	allow(&r, "/dev/urandom", FS_READ);
	allow(&r, "/dev/random", FS_READ);
	allow_reload(&r, cfg->path);
	for (unsigned i = 0; i < 5; i++)
		allow_reload(
		    &r, (const char *[]){ cfg->tls.cert, cfg->tls.key, cfg->tls.ca, cfg->tls.crl, cfg->tls.psk }[i]);
	if (config_include_dir(cfg, real) == 0)
		allow(&r, real, LOOK);
	allow_around(&r, cfg->control_path, SOCKETS);
	allow_around(&r, cfg->control_readonly, SOCKETS);
	allow_around(&r, addr_path(&cfg->metrics.listen), SOCKETS);
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		allow_around(&r, addr_path(&cfg->services[i].listen), SOCKETS);
	if (cards != NULL)
		allow(&r, cards, LOOK | FS_WRITE | FS_IOCTL_DEV);
	if (r.rc == 0 && syscall(NR_RESTRICT_SELF, r.fd, 0) != 0)
		r.rc = -errno;
	close(r.fd);
	return r.rc;
}

void
confine_files(const struct config *cfg, enum confine_do what, struct confine_part_state *out)
{
	int abi = (int)syscall(NR_CREATE_RULESET, NULL, 0, CREATE_VERSION), err = abi < 0 ? errno : EOPNOTSUPP;
	const char *cards = cards_path(cfg);

#ifdef SMCRD_COVERAGE
	confine_part_set(out, false, "built for measuring coverage, which writes files");
	return;
#endif
	if (abi <= 0) {
		/* EPERM is a filter's, as of a container. */
		confine_part_set(out, false,
		    err == ENOSYS || err == EOPNOTSUPP ? "the kernel has no Landlock: %s"
		                                       : "Landlock cannot be used here: %s",
		    strerror(err));
		return;
	}
	unsigned others = what == CONFINE_APPLY ? confine_threads() - 1 : 0;
	int rc = what == CONFINE_APPLY ? restrict_self(cfg, abi) : 0;
	if (rc != 0)
		confine_part_set(out, false, "Landlock: %s", strerror(-rc));
	else if (others > 0)
		confine_part_set(out, false, "%u other threads run already and are not restricted", others);
	else
		confine_part_set(out, true, "Landlock version %d: nothing can be executed or written%s", abi,
		    cards == NULL            ? ""
		        : cards == cards_dir ? " but RDMA cards"
		                             : " but all devices, as /dev/infiniband does not exist yet");
}
