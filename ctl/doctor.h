/* smcrctl doctor. doctor.c asks the daemon: status, service, devices, groups, links, stats, and a check of each address
 * of each ingress. doctor_rules.c makes findings of the answers, without I/O. */
#pragma once

#include <jansson.h>

struct options;

/* The worst finding is the exit status. */
enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_PROBLEM };

/* Findings: an array of objects with "level", "area", "what" and "advice"; *verdict is the worst level. Facts are the
 * "data" of answers by their commands (status, devices, groups, links, stats) and
 *   services     an array of `service`, one for each
 *   checks       an array of `check`, one for each address, with "services", all with that address, and "service", the first
 *   left_out     the number of addresses that were not checked, as there are too many
 *   read_only    the socket refuses checks */
json_t *doctor_findings(const json_t *facts, enum doctor_level *verdict);
extern const char *const doctor_level_words[];

/* Asks, and prints findings or JSON. The exit status: the verdict, 2 also without an answer of the daemon. */
int doctor_run(const struct options *);
