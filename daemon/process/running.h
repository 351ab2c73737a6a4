/* Where the running daemon of an instance has its control socket: a file beside the usual path, with its process and the path. By it a
 * reload and a restart find the daemon although control.path of the file is another one by now. Only for the instance's own file of
 * settings: several daemons may have others. */
#pragma once

#include <stddef.h>

/* Opens the file for a daemon that will note itself, before it is confined: a descriptor, or -1 without the directory. */
int running_open(const char *instance);
/* This process serves from now on, with this control socket. Closes fd. */
void running_note(int fd, const char *control_path);
/* It ends, and no process has taken over. */
void running_forget(const char *instance);
/* The control socket of the daemon that runs: `configured` if one answers there or none was noted, else the noted one, in buf of cap
 * bytes. */
const char *running_find(const char *instance, const char *configured, char *buf, size_t cap);
