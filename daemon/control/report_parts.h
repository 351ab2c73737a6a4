/* What the report files share: the makers of single reports, and how addresses and ids are written. */
#ifndef SMCRD_REPORT_PARTS_H
#define SMCRD_REPORT_PARTS_H

#include "daemon/control/report.h"

/* Each does one step and writes members of "data"; false when there are no more. They keep their place in
 * phase and pos. */
bool report_status(struct report *);
bool report_devices(struct report *);
bool report_groups(struct report *);
bool report_links(struct report *);
bool report_rmbs(struct report *);
bool report_connections(struct report *);
bool report_stats(struct report *);
bool report_drain(struct report *);

/* Counts up to REPORT_STEP_ITEMS sessions into sum.conns; false when all are counted. */
bool report_count_sessions(struct report *);

/* The next phase, from the start of its walk. Always true. */
bool report_next_phase(struct report *);

/* "192.0.2.1:80", "[2001:db8::1]:80"; "" for no address. */
void report_sockaddr(struct json_writer *, const char *key, const struct sockaddr_storage *);
void report_gid(struct json_writer *, const char *key, const struct rnic_gid *);
void report_mac(struct json_writer *, const char *key, const uint8_t mac[6]);
/* Eight digits behind 0x. */
void report_hex32(struct json_writer *, const char *key, uint32_t);
/* Nanoseconds as whole milliseconds. */
void report_ms(struct json_writer *, const char *key, int64_t ns);

#endif
