/*
 * Who may come in: the connections of a service, over all workers, and the limits on them. One for each service, which the
 * workers' services of that name share; under a lock, which each connection takes when it begins and when it ends, for
 * as long as counting takes. Beside them is what is told of a service once, whichever worker sees it (outage.h, fallback_period.h).
 * Nothing else of a service is shared.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/config/config.h"
#include "daemon/net/net.h"

struct admission;
struct outage;
struct fallback_periods;

/* All of them; owned by the workers' owner, which frees it when it has freed the workers. */
struct admissions {
	pthread_mutex_t lock; /* of the list and its members' references */
	struct list_node list;
};

void admissions_init(struct admissions *);
/* Without workers. */
void admissions_fini(struct admissions *);

/* The one of this service, for as long as the caller has it; a new one, with the seed (source_count.h), when there is none. NULL when
 * memory is out. */
struct admission *admission_get(struct admissions *, const struct config_service *, uint64_t seed);
/* A service of this name that comes later is another one, and counts from 0. */
void admission_retire(struct admissions *, struct admission *);
void admission_put(struct admissions *, struct admission *);

/* For as long as the caller has it. */
struct outage *admission_outage(struct admission *);
struct fallback_periods *admission_fallback_periods(struct admission *);

enum admission_verdict {
	ADMISSION_OK,
	ADMISSION_UNCOUNTED, /* let in, but memory is out: its source does not count it */
	ADMISSION_MAX,       /* max_connections are there */
	ADMISSION_PER_PEER,  /* max_connections_per_peer are there of this source */
};

/* One connection more, if the settings allow it. */
enum admission_verdict admission_take(struct admission *, const struct config_service *, const union net_addr *source);
/* It has ended. source: NULL when it was not counted. */
void admission_give(struct admission *, const union net_addr *source);
