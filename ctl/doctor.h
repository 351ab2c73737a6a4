/* smcrctl doctor. doctor.c asks the daemon: status, service, devices, groups, links, stats, and a check of each address
 * of each ingress. doctor_rules.c makes findings of the answers, without I/O. doctor_down.c asks systemd why there is no
 * daemon. */
#pragma once

#include <jansson.h>

struct options;

/* A note is of what was counted since the start, and is not counted now. */
enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARNING, DOCTOR_PROBLEM };

/* Findings: an array of objects with "level", "area", "what" and "advice"; *verdict is the worst level, of a note OK. Facts
 * are the "data" of answers by their commands (status, devices, groups, links, stats) and
 *   services     an array of `service`, one for each
 *   checks       an array of `check`, one for each address, with "services", all with that address, and "service", the first
 *   left_out     the number of addresses that were not checked, as there are too many
 *   read_only    the socket refuses checks
 *   before       facts of an earlier look: what its counters have, too, is a note */
json_t *doctor_findings(const json_t *facts, enum doctor_level *verdict);
extern const char *const doctor_level_words[];

/* The finding of a daemon that has no socket at this path. unit: properties of its systemd unit, {} without one, and
 * "error", the last one in the journal. */
json_t *doctor_down_finding(const char *socket, const char *instance, const json_t *unit);
/* The unit of the socket at this path, by systemctl and journalctl; {}: not known. */
json_t *doctor_down_unit(const char *socket, const char *instance);

/* Asks, and prints findings or JSON. The exit status: 0, 1 for a warning, 2 for a problem, or without an answer of the
 * daemon. */
int doctor_run(const struct options *);
