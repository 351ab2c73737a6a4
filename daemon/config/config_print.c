/* A configuration in canonical form (smcrd -T): every setting of the table, in its order, with defaults. */
#include <sys/socket.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"

/* family: of the service's listening address, which excludes settings of the other one; 0 elsewhere. */
static void
print_settings(unsigned place, int family, const void *base, const char *indent, FILE *out)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		if ((k->where & place) == 0 || !config_key_fits(k, family) || (k->flags & CONFIG_NOT_PRINTED) != 0)
			continue;
		if (!config_value_is_empty(k, base)) {
			fprintf(out, "%s%s = ", indent, k->name);
			config_value_print(k, base, out);
			fputs(";\n", out);
		} else if (k->type == CONFIG_T_NETS || k->type == CONFIG_T_USERS) {
			/* An empty list would not parse: see value_set_list. */
			fprintf(out, "%s# %s: everybody\n", indent, k->name);
		}
	}
}

/* The entries of a list; of services, those of this kind. */
static void
print_list(const struct config *cfg, const struct config_section *sec, FILE *out)
{
	bool devices = sec->place == CONFIG_AT_DEVICE;
	const char *sep = "";

	if (devices && cfg->devices_default)
		fputs("\n# The file names no devices; these are the default ones.", out);
	fprintf(out, "\n%s = (", sec->name);
	for (unsigned i = 0; i < (devices ? cfg->device_cnt : cfg->service_cnt); i++) {
		if (!devices && config_service_place(cfg->services[i].kind) != sec->place)
			continue;
		fprintf(out, "%s\n\t{\n", sep);
		if (devices)
			print_settings(config_device_place(cfg->devices[i].type), 0, &cfg->devices[i], "\t\t", out);
		else
			print_settings(sec->place, cfg->services[i].listen.ss_family, &cfg->services[i], "\t\t", out);
		fputs("\t}", out);
		sep = ",";
	}
	fprintf(out, "%s);\n", sep[0] != '\0' ? "\n" : "");
}

void
config_print(const struct config *cfg, FILE *out)
{
	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++) {
		if (sec->list_max > 0) {
			print_list(cfg, sec, out);
		} else if (sec->place == CONFIG_AT_TOP) {
			print_settings(sec->place, AF_UNSPEC, cfg, "", out);
		} else if (sec->place != CONFIG_AT_DEFAULTS) { /* printed with the services */
			fprintf(out, "\n%s = {\n", sec->name);
			print_settings(sec->place, AF_UNSPEC, cfg, "\t", out);
			fputs("};\n", out);
		}
	}
}
