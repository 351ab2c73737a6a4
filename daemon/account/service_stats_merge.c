/* Sums statistics over workers; see service_stats.h. Without the sessions, for code that only reads them. */
#include "daemon/account/service_stats.h"

void
service_stats_merge(struct service_stats *sum, const struct service_stats *one)
{
	for (unsigned i = 0; i < 3; i++)
		sum->modes[i] += one->modes[i];
	for (unsigned i = 0; i < 2; i++)
		sum->bytes[i] += one->bytes[i];
	histogram_merge(&sum->setup, &one->setup);
	histogram_merge(&sum->connect, &one->connect);
	histogram_merge(&sum->life, &one->life);
	if (one->reasons == NULL || sum->reasons == NULL)
		return;
	tally_merge(&sum->reasons->local, &one->reasons->local);
	tally_merge(&sum->reasons->peer, &one->reasons->peer);
	tally_merge(&sum->reasons->reset, &one->reasons->reset);
}
