/*
 * smcrctl doctor: what an operator would look at, in one go. doctor.c asks the
 * daemon (status, service, devices, groups, links, stats, and a check for each
 * address of each ingress); doctor_rules.c makes findings of the answers, and
 * knows nothing of sockets.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct options;

/* The worst finding is the exit status. */
enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_PROBLEM };

/* The "data" of answers. */
struct doctor_facts {
	const json_t *status, *devices, *groups, *links, *stats;
	const json_t *services; /* array: of `service`, one for each service */
	/* array: of `check`, with "service" added, the first service with that address, and "services", all of them; of several
	 * addresses of a service those that were tried */
	const json_t *checks;
	int64_t left_out; /* addresses that were not checked, as they are too many */
	bool read_only;   /* the socket takes no checks */
};

/* Findings: an array of objects with "level", "area", "what" and "advice". */
json_t *doctor_findings(const struct doctor_facts *);
enum doctor_level doctor_verdict(const json_t *findings);
const char *doctor_level_str(enum doctor_level);

/* All of it; prints findings, or JSON. The exit status: the verdict, 2 also when the daemon cannot be asked. */
int doctor_run(const struct options *);
