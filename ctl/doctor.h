/*
 * smcrctl doctor: what an operator would look at, in one go. doctor.c asks the
 * daemon (status, service, devices, groups, links, stats, and a check for each
 * address of each ingress); doctor_rules.c makes findings of the answers, and
 * knows nothing of sockets.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct options;

/* The worst finding is the exit status. */
enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_PROBLEM };

/*
 * Findings: an array of objects with "level", "area", "what" and "advice". Facts are the "data" of answers by their commands (status,
 * devices, groups, links, stats) and
 *   services     an array: of `service`, one for each
 *   checks       an array: of `check`, of several addresses of a service those that were tried, with "service" added, the first
 *                service with that address, and "services", all of them
 *   left_out     addresses that were not checked, as they are too many
 *   read_only    the socket takes no checks
 */
json_t *doctor_findings(const json_t *facts);
enum doctor_level doctor_verdict(const json_t *findings);
const char *doctor_level_str(enum doctor_level);

/* All of it; prints findings, or JSON. The exit status: the verdict, 2 also when the daemon cannot be asked. */
int doctor_run(const struct options *);
