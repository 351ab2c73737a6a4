/* The table of settings: name, place, type, range, default, whether a reload can change it, and its place in struct
 * config. A new setting is one line here and a paragraph in smcrd.conf.5, which a test checks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The place of a setting; also the bits of config_key.where. */
enum config_place {
	CONFIG_AT_TOP = 1 << 0,
	CONFIG_AT_CONTROL = 1 << 1,
	CONFIG_AT_KEEPALIVE = 1 << 2,
	CONFIG_AT_SMCR = 1 << 3,
	CONFIG_AT_SIW = 1 << 4, /* devices, by type */
	CONFIG_AT_VERBS = 1 << 5,
	CONFIG_AT_DEVICE = CONFIG_AT_SIW | CONFIG_AT_VERBS,
	CONFIG_AT_INGRESS = 1 << 6,
	CONFIG_AT_EGRESS = 1 << 7,
	CONFIG_AT_CONFINE = 1 << 8,
	CONFIG_AT_DEFAULTS = 1 << 10, /* defaults for the services of a kind */
	CONFIG_AT_METRICS = 1 << 11,
	CONFIG_AT_TLS = 1 << 12,
	CONFIG_AT_LOG = 1 << 14,
	CONFIG_AT_PROBE = 1 << 13,   /* `probe` of a service */
	CONFIG_AT_VIA = 1 << 15,     /* an entry of `via` of an ingress */
	CONFIG_AT_INCLUDED = 1 << 9, /* an included file, which may have only lists */
};

/* Types of settings: as written in the file -> as stored at config_key.off of the base struct. */
enum config_type {
	CONFIG_T_BOOL,    /* true, false -> bool */
	CONFIG_T_UINT,    /* integer -> uint8_t, uint16_t or uint32_t */
	CONFIG_T_SIZE,    /* integer (bytes) or "64K", "1M" -> uint32_t or uint64_t */
	CONFIG_T_US,      /* integer (seconds) or "50us", "1ms" -> uint32_t microseconds */
	CONFIG_T_US_WORD, /* string, one of words or "50us", "1ms" -> uint32_t, the word's value or microseconds */
	CONFIG_T_MS,      /* integer (seconds) or "500ms", "30s", "5m", "2h" -> uint32_t milliseconds */
	CONFIG_T_SECONDS, /* the same, whole seconds only -> uint32_t seconds */
	CONFIG_T_WORD,    /* string, one of words -> an enum or int */
	CONFIG_T_CHOICE,  /* string or integer, one of words -> uint8_t, an enum or int */
	CONFIG_T_WORDS,   /* list of strings, each of words -> unsigned, bits or-ed */
	CONFIG_T_NAME,    /* string of letters, digits, '.', '_', '-' -> char[len] */
	CONFIG_T_IFNAME,  /* string, name of an interface, or "*" -> char[len] */
	CONFIG_T_CARD,    /* string, name of an RDMA card, or "*" -> char[len] */
	CONFIG_T_PATH,    /* string, absolute path -> char[len] */
	CONFIG_T_PATTERN, /* string, a pattern of file names -> char[len] */
	CONFIG_T_MODE,    /* string, octal -> uint32_t */
	CONFIG_T_ADDR,    /* string, address without port -> struct sockaddr_storage */
	CONFIG_T_ADDRS,   /* list of strings, addresses without port -> struct siw_addrs */
	CONFIG_T_LISTEN,  /* string, address:port or unix:/path -> struct sockaddr_storage */
	CONFIG_T_TARGET, /* string, host:port, unix:/path or srv:name, or a list -> as CONFIG_T_NETS, not looked up; or a
	                     word of config_to_words -> no entries, and enum config_to behind the count */
	CONFIG_T_NETS,   /* list of strings, address or address/prefix -> *off nets, off + sizeof pointer count */
	CONFIG_T_DESTS, /* list of strings, as CONFIG_T_NETS and maybe ports behind -> as CONFIG_T_NETS, config_dests */
	CONFIG_T_PEER_ADDR, /* string, address:port or "*:port" -> struct sockaddr_storage, "*" unspecified */
	CONFIG_T_VIAS,      /* list of groups, of the settings of place `max` -> as CONFIG_T_NETS, config_vias */
	CONFIG_T_PORTS,     /* integer or "first-last" -> two uint16_t */
	CONFIG_T_USER,      /* string or integer, name or uid -> struct config_id, a name not looked up */
	CONFIG_T_GROUP,     /* the same of a group */
	CONFIG_T_USERS,     /* list of strings and integers -> *off config_ids, off + sizeof pointer count */
	CONFIG_T_EIDS,      /* list of strings, UEIDs -> uint8_t count, followed by that many struct clc_eid */
	CONFIG_T_BYTES,     /* string of any characters but NUL -> char[len] */
	CONFIG_T_INNER,     /* a group, of the settings of place `max`, below off; all zero: not set */
	CONFIG_T_PEERS,     /* list of strings, names of peers -> char[len], separated by newlines */
};

enum {
	CONFIG_REQUIRED = 1 << 0,
	CONFIG_RELOAD = 1 << 1,  /* a reload can change it */
	CONFIG_OR_ZERO = 1 << 2, /* 0 is allowed besides min..max */
	CONFIG_POW2 = 1 << 3,
	CONFIG_AUTO = 1 << 4,        /* for a number: "auto", stored as 0, is allowed besides min..max */
	CONFIG_TCP_ONLY = 1 << 5,    /* for a service that listens on TCP */
	CONFIG_UNIX_ONLY = 1 << 6,   /* for a service that listens on a UNIX socket */
	CONFIG_NOT_PRINTED = 1 << 7, /* -T prints the derived settings instead, and only these are compared */
};

struct config_word {
	const char *text;
	unsigned value;
};

struct config_key {
	const char *name;
	unsigned where; /* CONFIG_AT_ bits */
	enum config_type type;
	unsigned flags;
	uint64_t min, max; /* numbers, in the unit of the stored value */
	const char *def;   /* as written in the file; lists separated by commas; NULL = no default */
	size_t off, len;
	const struct config_word *words; /* ends with text == NULL */
};

extern const struct config_key config_keys[]; /* ends with name == NULL */

/* A group of settings in the file. */
struct config_section {
	const char *name;   /* "" = top level */
	const char *prefix; /* prefix of its settings in messages: the name and a dot */
	enum config_place place;
	unsigned list_max; /* 0 = one group, otherwise ( { ... }, { ... } ) with at most this many */
};

extern const struct config_section config_sections[]; /* ends with name == NULL; the top level is first */

/* The key of this name in any of the places (CONFIG_AT_ bits); NULL: not found. */
const struct config_key *config_key_find(unsigned places, const char *name);
/* Does the setting apply to a service that listens on this address family? */
bool config_key_fits(const struct config_key *, int family);
/* The place of a device's settings, by enum config_device_type, and of a service's, by enum config_kind. */
enum config_place config_device_place(unsigned type);
enum config_place config_service_place(unsigned kind);
const struct config_section *config_section_find(const char *name);
/* The key of these places (CONFIG_AT_ bits), or at top level the section, with a similar name; NULL: not found. */
const char *config_nearest(unsigned places, const char *name);
#define CONFIG_SERVICES_MAX 1024
#define CONFIG_ITEMS_MAX 1024 /* entries of a list */
