/* Rules of nftables that lead programs' connections to an ingress for all destinations (to = "original"). Loads nothing. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define CAPTURE_SLICE "smcrd.slice/smcrd-programs.slice" /* smcrd-run's: systemd puts it into smcrd.slice */
/* An ingress with `original` answers connections to these itself, for smcrd-run: RFC 7600's dummy address, and its like. */
#define CAPTURE_PROBE4 "192.0.0.8"
#define CAPTURE_PROBE6 "100::8"
#define CAPTURE_PROBE_PORT 9

/* Whose connections; at most one is set, none: the cgroup of smcrd-run. */
struct capture {
	const char *cgroup, *uid, *interface;
	bool strict;
};

/* Prints an nft file for this answer to "service". 0, or -EINVAL with a line on err. */
int capture_print(FILE *out, FILE *err, const json_t *service, const struct capture *);
