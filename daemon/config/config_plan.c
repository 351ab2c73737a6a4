/* The changes of a reload: two configurations compared setting by setting, by the table of config_keys.c. */
#include "daemon/config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"

/* Settings of other structs than struct config. */
#define PLACES_LISTS (CONFIG_AT_DEVICE | CONFIG_AT_INGRESS | CONFIG_AT_EGRESS)

/* Counts the settings of these places that differ, and writes their names to text (may be NULL). */
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
	return a->kind == b->kind && differing(config_service_place(a->kind), a, b, NULL) == 0;
}

/* The entry of the same type and address, interface or card. */
static const struct config_device *
find_device(const struct config *cfg, const struct config_device *like)
{
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		const struct config_device *dev = &cfg->devices[i];

		if (dev->type == like->type && strcmp(dev->interface, like->interface) == 0 &&
		    strcmp(dev->card, like->card) == 0 && dev->port == like->port &&
		    addr_same_host(&dev->addr, &like->addr))
			return dev;
	}
	return NULL;
}

static const char *
device_place(const struct config_device *dev, char *buf, size_t cap)
{
	if (dev->card[0] != '\0')
		return dev->card;
	return dev->interface[0] != '\0' ? dev->interface : addr_format(&dev->addr, buf, cap);
}

/* New devices are opened; present ones carry traffic and stay unchanged. */
static void
plan_devices(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	char buf[ADDR_STR_MAX];

	for (unsigned i = 0; i < next->device_cnt; i++) {
		const struct config_device *is = &next->devices[i], *was = find_device(old, is);

		if (was == NULL) {
			plan->settings++;
			fprintf(text, "device at %s added\n", device_place(is, buf, sizeof(buf)));
		} else if (!(next->devices_default && old->devices_default) &&
		    differing(config_device_place(is->type), was, is, NULL) > 0) {
			plan->fixed++;
			fprintf(text, "warning: device at %s cannot be changed by a reload: " CONFIG_BY_TAKE_OVER "\n",
			    device_place(is, buf, sizeof(buf)));
		}
	}
	/* Default devices follow services and routes: an extra one is harmless. */
	for (unsigned i = 0; i < old->device_cnt; i++) {
		if (old->devices_default || find_device(next, &old->devices[i]) != NULL)
			continue;
		plan->fixed++;
		fprintf(text, "warning: device at %s cannot be removed by a reload: " CONFIG_BY_TAKE_OVER "\n",
		    device_place(&old->devices[i], buf, sizeof(buf)));
	}
}

/* The text names so many services: a reload may change hundreds. */
#define NAMED_MAX 20

static void
plan_services(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	for (unsigned i = 0; i < next->service_cnt; i++) {
		const struct config_service *is = &next->services[i], *was = config_find_service(old, is->name);
		const bool named = plan->added + plan->changed < NAMED_MAX;

		if (was == NULL) {
			plan->added++;
			if (named)
				fprintf(text, "service %s added\n", is->name);
		} else if (was->kind != is->kind) {
			plan->changed++;
			if (named)
				fprintf(text, "service %s changed: from %s\n", is->name,
				    is->kind == CONFIG_INGRESS ? "egress to ingress" : "ingress to egress");
		} else if (!config_service_equal(was, is)) {
			plan->changed++;
			if (!named)
				continue;
			fprintf(text, "service %s changed: ", is->name);
			differing(config_service_place(is->kind), was, is, text);
			fputc('\n', text);
		}
	}
	for (unsigned i = 0; i < old->service_cnt; i++) {
		if (config_find_service(next, old->services[i].name) != NULL)
			continue;
		if (plan->added + plan->changed + plan->removed++ < NAMED_MAX)
			fprintf(text, "service %s removed\n", old->services[i].name);
	}
	if (plan->added + plan->changed + plan->removed > NAMED_MAX)
		fprintf(text, "in all: %u services added, %u changed, %u removed\n", plan->added, plan->changed,
		    plan->removed);
}

void
config_plan(const struct config *old, const struct config *next, struct config_plan *plan, FILE *text)
{
	*plan = (struct config_plan){ 0 };
	plan_services(old, next, plan, text);
	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++) {
		for (const struct config_key *k = config_keys; k->name != NULL; k++) {
			if ((k->where & sec->place) == 0 || sec->list_max > 0 || (k->flags & CONFIG_NOT_PRINTED) != 0 ||
			    config_value_equal(k, old, next))
				continue;
			if ((k->flags & CONFIG_RELOAD) != 0) {
				plan->settings++;
				fprintf(text, "setting %s%s changed\n", sec->prefix, k->name);
			} else {
				plan->fixed++;
				fprintf(text, "warning: %s%s cannot be changed by a reload: " CONFIG_BY_TAKE_OVER "\n",
				    sec->prefix, k->name);
			}
		}
	}
	plan_devices(old, next, plan, text);
}

static bool
device_name_taken(const struct config_device *devs, unsigned cnt, const char *name)
{
	for (unsigned i = 0; i < cnt; i++)
		if (strcmp(devs[i].name, name) == 0)
			return true;
	return false;
}

int
config_keep_fixed(const struct config *old, struct config *next)
{
	struct config_device *all = calloc(old->device_cnt + next->device_cnt + 1, sizeof(*all));
	unsigned cnt = 0;

	if (all == NULL)
		return -ENOMEM;
	/* The devices of old unchanged, followed by those only in next; they own no memory: plain copies. */
	for (; cnt < old->device_cnt; cnt++) {
		all[cnt] = old->devices[cnt];
		all[cnt].place = 0; /* it was in the files of old */
	}
	for (unsigned i = 0; i < next->device_cnt; i++) {
		struct config_device *dev = &all[cnt];

		if (find_device(old, &next->devices[i]) != NULL)
			continue;
		*dev = next->devices[i];
		/* Numbers are assigned by place in the list: the new one's may be in use. */
		if (dev->type == CONFIG_DEVICE_VERBS && device_name_taken(all, cnt, dev->name))
			dev->name[0] = '\0';
		for (unsigned n = 0; dev->name[0] != '\0' && device_name_taken(all, cnt, dev->name); n++)
			snprintf(dev->name, sizeof(dev->name), "siw%u", n);
		cnt++;
	}
	free(next->devices);
	next->devices = all;
	next->device_cnt = cnt;
	/* Settings of struct config that need a take-over own no memory either. */
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & PLACES_LISTS) == 0 && (k->flags & CONFIG_RELOAD) == 0)
			memcpy((char *)next + k->off, (const char *)old + k->off, k->len);
	return 0;
}
