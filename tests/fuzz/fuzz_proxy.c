#include <errno.h>

#include "base/addr.h"
#include "daemon/leg/proxy_header.h"
#include "fuzz.h"

/* Every shorter piece of a header that is taken needs more, and what we write for its client is taken as the same. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct sockaddr_storage none = { .ss_family = 0xff };
	struct sockaddr_storage client = none, again;
	union net_addr from, to;
	uint8_t buf[PROXY_HEADER_MAX];
	const char *why = NULL;
	const int rc = proxy_header_decode((struct span){ data, len }, &client, &why);

	FUZZ_CHECK(rc <= PROXY_READ_MAX && rc <= (int)len && (rc >= 0 || (rc == -EBADMSG && why != NULL)));
	FUZZ_CHECK((rc > 0) == (memcmp(&client, &none, sizeof(none)) != 0));
	if (rc <= 0)
		return 0;
	for (int cut = 0; cut < rc; cut++)
		FUZZ_CHECK(proxy_header_decode((struct span){ data, (size_t)cut }, &again, &why) == 0);
	if (client.ss_family == AF_UNSPEC)
		return 0;
	FUZZ_CHECK(addr_port(&client) != 0 && !addr_is_any(&client) && !addr_is_multicast(&client));
	net_addr_set(&from, &client);
	net_addr_set(&to, &client);
	for (enum config_proxy v = CONFIG_PROXY_V1; v <= CONFIG_PROXY_V2; v++) {
		const size_t n = proxy_header(v, &from, &to, buf);

		FUZZ_CHECK(proxy_header_decode((struct span){ buf, n }, &again, &why) == (int)n);
		FUZZ_CHECK(addr_same_place(&client, &again));
	}
	return 0;
}
