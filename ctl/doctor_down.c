/* Why there is no daemon, by what systemd knows of its unit; see doctor.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor.h"
#include "ctl/options.h"
#include "ctl/template.h"

#define LINE_OF_JOURNAL_MAX 1024
#define PROPERTIES "LoadState,ActiveState,SubState,ConditionResult,Result,ExecMainStatus"

/* In this order: the first that says anything is the finding. */
static const struct {
	const char *what, *advice;
} whys[] = {
	{ "[unit.ActiveState=active?the unit smcrd.service is active, but there is no control socket at {socket}]",
	    "name its socket with --socket (control.path in smcrd.conf)" },
	/* Also while it waits for the next try. */
	{ "[unit.LoadState=loaded?[unit.Result=success?|smcrd does not run: smcrd.service ended with {unit.Result}, exit status "
	  "{unit.ExecMainStatus}[unit.SubState=auto-restart?, and systemd tries again][unit.error?; its last error: "
	  "{unit.error}]]]",
	    "mend that (smcrd -t checks the file, ports and sockets), then systemctl restart smcrd" },
	{ "[unit.ConditionResult=no?smcrd does not run: a condition of smcrd.service does not hold, as there is no smcrd.conf]",
	    "write it (systemctl status smcrd shows the path), and systemctl start smcrd" },
	{ "[unit.LoadState=loaded?smcrd does not run: smcrd.service is {unit.ActiveState}]", "systemctl start smcrd" },
	{ "smcrd does not run, or listens elsewhere: no daemon at {socket}",
	    "start it (systemctl start smcrd), or name its socket with --socket (control.path in smcrd.conf)" },
};

json_t *
doctor_down_finding(const char *socket, const json_t *unit)
{
	json_t *o = json_pack("{s:s, s:O*}", "socket", socket, "unit", unit), *finding = NULL;

	for (size_t i = 0; finding == NULL && i < sizeof(whys) / sizeof(whys[0]); i++) {
		char *what = template_str(o, whys[i].what);

		if (what != NULL && what[0] != '\0')
			finding = json_pack("{s:s, s:s, s:s, s:s}", "level", doctor_level_words[DOCTOR_PROBLEM], "area",
			    "daemon", "what", what, "advice", whys[i].advice);
		free(what);
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
doctor_down_unit(const char *socket)
{
	json_t *unit = json_object();

	if (strcmp(socket, OPTIONS_DEFAULT_SOCKET) != 0)
		return unit;
	add_lines(unit, "systemctl show -p " PROPERTIES " smcrd.service 2>/dev/null", NULL);
	if (template_holds(unit, "LoadState=loaded"))
		add_lines(unit, "journalctl -q -n 1 -p err -o cat _SYSTEMD_UNIT=smcrd.service 2>/dev/null", "error");
	return unit;
}
