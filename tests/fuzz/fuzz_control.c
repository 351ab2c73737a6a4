#include <errno.h>
#include <string.h>

#include "daemon/control/control_request.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct control_error err = { .text = "" };
	struct control_request req;
	int rc = control_request_parse((const char *)data, len, &req, &err);

	if (rc != 0) {
		FUZZ_CHECK(rc == -EINVAL && err.code != NULL && err.text[0] != '\0');
		return 0;
	}
	FUZZ_CHECK(strlen(req.service) < sizeof(req.service));
	FUZZ_CHECK(req.modes != 0 && req.kinds != 0);
	FUZZ_CHECK(req.timeout_ms > 0 && req.timeout_ms <= CONTROL_CHECK_MAX_MS);
	FUZZ_CHECK(req.command != CONTROL_CHECK || req.peer.ss_family != AF_UNSPEC);
	FUZZ_CHECK(control_commands[req.command].name != NULL);
	return 0;
}
