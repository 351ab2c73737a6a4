/* The figures of a service in several workers; see figures.h. Apart, for who only looks at them. */
#include "daemon/session/figures.h"

void
figures_merge(struct service_figures *sum, const struct service_figures *one)
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
