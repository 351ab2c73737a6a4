/* What a reload would change: see config_plan.h. */
#include "daemon/config_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config_keys.h"
#include "daemon/config_value.h"

#define PLACES_CFG (CONFIG_AT_TOP | CONFIG_AT_CONTROL | CONFIG_AT_KEEPALIVE | CONFIG_AT_SMCR)

static enum config_place
place_of(const struct config_service *svc)
{
	return svc->kind == CONFIG_INGRESS ? CONFIG_AT_INGRESS : CONFIG_AT_EGRESS;
}

/* Settings of these places that differ: how many; their names to text. */
static unsigned
differing(unsigned places, const void *a, const void *b, FILE *text)
{
	unsigned cnt = 0;

	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		if ((k->where & places) == 0 || config_value_equal(k, a, b))
			continue;
		if (text != NULL)
			fprintf(text, "%s%s", cnt > 0 ? ", " : "", k->name);
		cnt++;
	}
	return cnt;
}

const struct config_service *
config_find_service(const struct config *cfg, const char *name)
{
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (strcmp(cfg->services[i].name, name) == 0)
			return &cfg->services[i];
	return NULL;
}

bool
config_service_equal(const struct config_service *a, const struct config_service *b)
{
	return a->kind == b->kind && differing(place_of(a), a, b, NULL) == 0;
}

static void
plan_service(const struct config_service *was, const struct config_service *is, struct config_plan *plan, FILE *text)
{
	if (was == NULL) {
		plan->added++;
		fprintf(text, "service %s added\n", is->name);
	} else if (was->kind != is->kind) {
		plan->changed++;
		fprintf(text, "service %s changed: from %s\n", is->name,
		    is->kind == CONFIG_INGRESS ? "egress to ingress" : "ingress to egress");
	} else if (!config_service_equal(was, is)) {
		plan->changed++;
		fprintf(text, "service %s changed: ", is->name);
		differing(place_of(is), was, is, text);
		fputc('\n', text);
	}
}

static void
plan_settings(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++) {
		const char *dot = sec->name[0] != '\0' ? "." : "";

		if ((sec->place & PLACES_CFG) == 0)
			continue;
		for (const struct config_key *k = config_keys; k->name != NULL; k++) {
			if ((k->where & sec->place) == 0 || config_value_equal(k, old, next))
				continue;
			if ((k->flags & CONFIG_RELOAD) != 0) {
				plan->settings++;
				fprintf(text, "setting %s%s%s changed\n", sec->name, dot, k->name);
			} else {
				plan->fixed++;
				fprintf(text, "warning: %s%s%s cannot be changed by a reload: restart smcrd\n",
				    sec->name, dot, k->name);
			}
		}
	}
}

static const struct config_device *
find_device(const struct config *cfg, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < cfg->device_cnt; i++)
		if (addr_same_host(&cfg->devices[i].siw.addr, addr))
			return &cfg->devices[i];
	return NULL;
}

/* Default devices follow services and routes: only an address that has no device yet is worth a warning. */
static void
plan_default_devices(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	char buf[ADDR_STR_MAX];

	for (unsigned i = 0; i < next->device_cnt; i++) {
		const struct sockaddr_storage *addr = &next->devices[i].siw.addr;

		if (find_device(old, addr) != NULL)
			continue;
		plan->fixed++;
		fprintf(
		    text, "warning: %s has no device until smcrd is restarted\n", addr_format(addr, buf, sizeof(buf)));
	}
}

static void
plan_devices(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	bool same = old->device_cnt == next->device_cnt && old->devices_default == next->devices_default;

	if (old->devices_default && next->devices_default) {
		plan_default_devices(old, next, plan, text);
		return;
	}
	for (unsigned i = 0; same && i < next->device_cnt; i++)
		same = differing(CONFIG_AT_DEVICE, &old->devices[i], &next->devices[i], NULL) == 0;
	if (same)
		return;
	plan->fixed++;
	fputs("warning: devices cannot be changed by a reload: restart smcrd\n", text);
}

static void
make_plan(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	for (unsigned i = 0; i < next->service_cnt; i++)
		plan_service(config_find_service(old, next->services[i].name), &next->services[i], plan, text);
	for (unsigned i = 0; i < old->service_cnt; i++) {
		if (config_find_service(next, old->services[i].name) != NULL)
			continue;
		plan->removed++;
		fprintf(text, "service %s removed\n", old->services[i].name);
	}
	plan_settings(old, next, plan, text);
	plan_devices(old, next, plan, text);
}

void
config_plan(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	struct config_plan p = { 0 };

	make_plan(old, next, &p, text);
	*plan = p;
}

int
config_keep_fixed(const struct config *old, struct config *next)
{
	struct config_device *devices = calloc(old->device_cnt + 1, sizeof(*devices));

	if (devices == NULL)
		return -ENOMEM;
	/* Device settings own no memory, nor do those of struct config that need a restart: plain copies. */
	for (unsigned i = 0; i < old->device_cnt; i++)
		devices[i] = old->devices[i];
	free(next->devices);
	next->devices = devices;
	next->device_cnt = old->device_cnt;
	next->devices_default = old->devices_default;
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & PLACES_CFG) != 0 && (k->flags & CONFIG_RELOAD) == 0)
			memcpy((char *)next + k->off, (const char *)old + k->off, k->len);
	return 0;
}
