/* Why there is no daemon, by what systemd knows of its unit; see doctor.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/instance.h"
#include "ctl/doctor.h"
#include "ctl/options.h"
#include "ctl/template.h"

#define LINE_OF_JOURNAL_MAX 1024
#define PROPERTIES "LoadState,ActiveState,SubState,ConditionResult,Result,ExecMainStatus"

/* In this order: the first that says anything is the finding. */
static const struct {
	const char *what, *advice;
} whys[] = {
	{ "[unit.ActiveState=active?the unit {name}.service is active, but there is no control socket at {socket}]",
	    "name its socket with --socket (control.path in smcrd.conf)" },
	/* Also while it waits for the next try. */
	{ "[unit.LoadState=loaded?[unit.Result=success?|smcrd does not run: {name}.service ended with {unit.Result}, exit status "
	  "{unit.ExecMainStatus}[unit.SubState=auto-restart?, and systemd tries again][unit.error?; its last error: "
	  "{unit.error}]]]",
	    "mend that (smcrd{option} -t checks the file, ports and sockets), then systemctl restart {name}" },
	{ "[unit.ConditionResult=no?smcrd does not run: a condition of {name}.service does not hold, as there is no {file}.conf]",
	    "write it (systemctl status {name} shows the path), and systemctl start {name}" },
	{ "[unit.LoadState=loaded?smcrd does not run: {name}.service is {unit.ActiveState}]",
	    "systemctl start {name}" },
	{ "smcrd does not run, or listens elsewhere: no daemon at {socket}",
	    "start it (systemctl start {name}), or name its socket with --socket (control.path in smcrd.conf)" },
};

json_t *
doctor_down_finding(const char *socket, const char *instance, const json_t *unit)
{
	const char *name = instance != NULL ? instance : "";
	json_t *o = json_pack("{s:s, s:O*, s:s++, s:s++, s:s}", "socket", socket, "unit", unit, "name", "smcrd",
	    instance != NULL ? "@" : "", name, "option", "", instance != NULL ? " -i " : "", name, "file",
	    instance != NULL ? instance : "smcrd");
	json_t *finding = NULL;

	for (size_t i = 0; finding == NULL && i < sizeof(whys) / sizeof(whys[0]); i++) {
		char *what = template_str(o, whys[i].what), *advice = template_str(o, whys[i].advice);

		if (what != NULL && what[0] != '\0' && advice != NULL)
			finding = json_pack("{s:s, s:s, s:s, s:s}", "level", doctor_level_words[DOCTOR_PROBLEM], "area",
			    "daemon", "what", what, "advice", advice);
		free(what);
		free(advice);
	}
	json_decref(o);
	return finding;
}

/* The lines of a command without its errors: of KEY=VALUE each into the object, of others the last one as `key`. */
static void
add_lines(json_t *unit, const char *command, const char *key)
{
	char line[LINE_OF_JOURNAL_MAX];
	FILE *f = popen(command, "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *value = key == NULL ? strchr(line, '=') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (value != NULL)
			*value++ = '\0';
		if (key != NULL || value != NULL)
			json_object_set_new(unit, key != NULL ? key : line, json_string(key != NULL ? line : value));
	}
	if (f != NULL)
		pclose(f);
}

json_t *
doctor_down_unit(const char *socket, const char *instance)
{
	char command[256], usual[OPTIONS_SOCKET_MAX], name[INSTANCE_NAME_MAX + 8];
	json_t *unit = json_object();

	if (strcmp(socket, instance_control_path(instance, usual, sizeof(usual))) != 0)
		return unit;
	/* The name was checked: a shell takes it as it is. */
	(void)snprintf(name, sizeof(name), "smcrd%s%s", instance != NULL ? "@" : "", instance != NULL ? instance : "");
	(void)snprintf(command, sizeof(command), "systemctl show -p " PROPERTIES " %s.service 2>/dev/null", name);
	add_lines(unit, command, NULL);
	/* The keeper's line comes after the reason, and says no more than Result and ExecMainStatus. */
	(void)snprintf(command, sizeof(command),
	    "journalctl -q -n 2 -p err -o cat _SYSTEMD_UNIT=%s.service 2>/dev/null | grep -v ' failed at its start, '",
	    name);
	if (template_holds(unit, "LoadState=loaded"))
		add_lines(unit, command, "error");
	return unit;
}
