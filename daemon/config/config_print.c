/* The configuration in canonical form (-T): every setting of the table, in its order, defaults written out. */
#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"

static void
print_settings(unsigned place, const void *base, const char *indent, FILE *out)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		if ((k->where & place) == 0)
			continue;
		/* Written as an empty list this would not parse again: see config_value.c. */
		if (k->type == CONFIG_T_NETS && config_value_is_empty(k, base)) {
			fprintf(out, "%s# %s: everybody\n", indent, k->name);
			continue;
		}
		if (config_value_is_empty(k, base))
			continue;
		fprintf(out, "%s%s = ", indent, k->name);
		config_value_print(k, base, out);
		fputs(";\n", out);
	}
}

static void
print_services(const struct config *cfg, const struct config_section *sec, enum config_kind kind, FILE *out)
{
	const char *sep = "";

	fprintf(out, "\n%s = (", sec->name);
	for (unsigned i = 0; i < cfg->service_cnt; i++) {
		if (cfg->services[i].kind != kind)
			continue;
		fprintf(out, "%s\n\t{\n", sep);
		print_settings(sec->place, &cfg->services[i], "\t\t", out);
		fputs("\t}", out);
		sep = ",";
	}
	fprintf(out, "%s);\n", sep[0] != '\0' ? "\n" : "");
}

static void
print_devices(const struct config *cfg, const struct config_section *sec, FILE *out)
{
	if (cfg->devices_default)
		fputs("\n# The file names no devices; these are the default ones.", out);
	fprintf(out, "\n%s = (", sec->name);
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		fprintf(out, "%s\n\t{\n", i > 0 ? "," : "");
		print_settings(config_device_place(cfg->devices[i].type), &cfg->devices[i], "\t\t", out);
		fputs("\t}", out);
	}
	fprintf(out, "%s);\n", cfg->device_cnt > 0 ? "\n" : "");
}

void
config_print(const struct config *cfg, FILE *out)
{
	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++) {
		switch (sec->place) {
		case CONFIG_AT_TOP:
			print_settings(sec->place, cfg, "", out);
			break;
		case CONFIG_AT_CONTROL:
		case CONFIG_AT_CONFINE:
		case CONFIG_AT_KEEPALIVE:
		case CONFIG_AT_SMCR:
			fprintf(out, "\n%s = {\n", sec->name);
			print_settings(sec->place, cfg, "\t", out);
			fputs("};\n", out);
			break;
		case CONFIG_AT_SIW:
		case CONFIG_AT_VERBS:
		case CONFIG_AT_DEVICE:
			print_devices(cfg, sec, out);
			break;
		case CONFIG_AT_INGRESS:
			print_services(cfg, sec, CONFIG_INGRESS, out);
			break;
		case CONFIG_AT_EGRESS:
			print_services(cfg, sec, CONFIG_EGRESS, out);
			break;
		}
	}
}
