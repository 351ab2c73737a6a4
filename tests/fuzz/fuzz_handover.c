/*
 * A hand-over (daemon/control/handover_msg.h) with a process that says anything: of the side that the header names. The descriptors that come
 * with messages are real ones, so the kernel's sockets are used.
 *
 * Whatever is said: no descriptor is left open, no file is removed but of sockets that were handed over, and what a side takes for a
 * listening socket is one.
 */
#include "fuzz_handover.h"

#include <stdlib.h>

#include "base/log.h"
#include "descriptors.h"
#include "fuzz.h"
#include "tests/scenario/oom.h"

unsigned
fuzz_mutations(void)
{
	return 3000;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t header[STEPS_HEADER];
	struct steps steps;

	if (!steps_begin(&steps, data, len, header))
		return 0;
	const struct handover_header h = { header[1], header[2], header[3] };

	log_init(LOG_LVL_ERROR);
	descriptors_begin();
	const unsigned before = descriptors_open();
	if (header[0] % 2 == 0)
		handover_old_run(&h, &steps);
	else
		handover_new_run(&h, &steps);
	oom_disarm();
	descriptors_check();
	FUZZ_CHECK(descriptors_open() == before);
	return 0;
}
