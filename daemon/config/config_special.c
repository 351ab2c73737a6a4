/* Addresses that a look-up of a name must not return; see config.h. Called by config_lookup.c and by daemon/names. */
#include "daemon/config/config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/addr.h"
#include "daemon/config/config_int.h"

#define HOSTS "/etc/hosts"

const char config_only_special[] = "it has only loopback, link-local or multicast addresses, which DNS may not choose";
const char config_only_ours[] = "it has only addresses where this daemon itself listens";

bool
config_addr_is_special(const struct sockaddr_storage *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t b[16];

	addr_to_v6(addr, b);
	if (memcmp(b, mapped, sizeof(mapped)) == 0) /* 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3 */
		return b[12] == 0 || b[12] == 127 || (b[12] == 169 && b[13] == 254) || b[12] >= 224;
	return addr_is_any(addr) || addr_is_loopback(addr) || b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

static size_t
name_len(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && name[len - 1] == '.' ? len - 1 : len;
}

/* RFC 6761 6.3. */
static bool
is_localhost(const char *name)
{
	static const char localhost[] = "localhost";
	const size_t tail = sizeof(localhost) - 1, len = name_len(name);

	return len >= tail && strncasecmp(name + len - tail, localhost, tail) == 0 &&
	    (len == tail || name[len - tail - 1] == '.');
}

/* A line of the file: an address, then names. */
static bool
line_has(char *line, const char *name)
{
	char *save, *word;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, " \t\r\n", &save);
	while (word != NULL && (word = strtok_r(NULL, " \t\r\n", &save)) != NULL)
		if (strlen(word) == name_len(name) && strncasecmp(word, name, name_len(name)) == 0)
			return true;
	return false;
}

bool
config_name_is_this_hosts(const char *name)
{
	bool found = is_localhost(name);
	FILE *f = found ? NULL : fopen(HOSTS, "re");
	char line[1024];

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = line_has(line, name);
	if (f != NULL)
		fclose(f);
	return found;
}

bool
config_addr_is_ours(const struct sockaddr_storage *addr)
{
	struct sockaddr_storage from;

	/* The kernel connects to a local address from the same address, except within 127.0.0.0/8. */
	return addr_is_loopback(addr) || (config_source_to(addr, &from) && addr_same_host(addr, &from));
}

bool
config_leads_to(const struct sockaddr_storage *to, const struct sockaddr_storage *listen)
{
	if (to->ss_family == AF_UNIX || listen->ss_family == AF_UNIX || listen->ss_family == 0)
		return false;
	if (addr_port(to) != addr_port(listen))
		return false;
	if (addr_same_host(to, listen))
		return true;
	if (!addr_is_any(listen) || (listen->ss_family != AF_INET6 && to->ss_family != AF_INET))
		return false;
	return config_addr_is_ours(to);
}

bool
config_is_ours(const struct config *cfg, const struct sockaddr_storage *to)
{
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (config_leads_to(to, &cfg->services[i].listen))
			return true;
	return false;
}

bool
config_listens_on(const struct config *cfg, const struct sockaddr_storage *to)
{
	return config_is_ours(cfg, to) || config_leads_to(to, &cfg->metrics.listen);
}
