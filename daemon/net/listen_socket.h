/*
 * Listening sockets. One that we give a name in the file system, the control
 * socket's or a service's, has a file, which is made, told apart from that of a
 * live process, and removed at the end. Called by process/smcrd_open.c, control.c and
 * reload.c; owned by whoever has it, and plain data: it is moved by copying.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/un.h>

#include "daemon/config/config.h"

struct listen_socket {
	int fd;   /* -1 = none */
	int lock; /* of the directory, until we listen; -1 = none */
	bool
	    elsewhere; /* another process has it, too: systemd, or one before or after us. What is done to it is done to that one's */
	/* The file that is ours; "" = none: a TCP socket, or one of systemd's. */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev;
	ino_t ino;
	bool lent;   /* the file is another process's, or will be: it stays when this is closed */
	bool copy;   /* of a socket that another worker has */
	bool unit;   /* of a socket unit of systemd, which has it anyway */
	bool shared; /* others have copies of it, or it is one */
	/* More sockets of the same address, when more were passed than there are workers; owned by this one. */
	struct listen_socket *next;
};

#define LISTEN_SOCKET_NONE ((struct listen_socket){ .fd = -1, .lock = -1 })

/* Sockets to be passed on; their files stay when the list is freed. */
struct listen_socket_list {
	struct listen_socket *v;
	unsigned cnt, cap;
};

/* What a file is to be like. */
struct listen_socket_file {
	const char *what; /* in front of messages: "control socket" */
	const char *path;
	uint32_t mode;
	uid_t owner; /* -1 = the process's own */
	gid_t group; /* -1 = the process's own, or the directory's */
	bool waits;  /* for another process that has locked the directory; a loop that turns may not */
};

/* A socket that has no file of ours; none for a negative descriptor. */
struct listen_socket listen_socket_of_fd(int fd);
/* Another descriptor of the same socket, for another thread that accepts from it; the file stays with the first. None, and errno
 * says why, when it cannot be had. */
struct listen_socket listen_socket_copy(const struct listen_socket *);
/* Puts a socket of the same address behind another one, which owns it then. 0 or -ENOMEM. */
int listen_socket_append(struct listen_socket *, const struct listen_socket *more);
/* The same for it and those behind it. What is lent is elsewhere, too. */
void listen_socket_set_lent(struct listen_socket *, bool lent);
/* Makes the file, on which nobody listens yet: connecting fails. Replaces a socket that no process has open; never anything
 * else. 0, or -errno with one line in err. */
int listen_socket_open(struct listen_socket *, const struct listen_socket_file *, FILE *err);
/* From here on clients may connect. 0 or -errno with one line in err. */
int listen_socket_start(struct listen_socket *, const char *what, int backlog, FILE *err);
/* Both for the UNIX socket of a service; waits as above. 0 or -errno with one line in err. */
int listen_socket_listen(struct listen_socket *, const struct config_service *, bool waits, FILE *err);
/* Does it listen for streams at this address? A socket unit of systemd may have ListenDatagram= or Accept=yes. */
bool listen_socket_listens_at(const struct listen_socket *, const struct sockaddr_storage *);
/* Closes the descriptor and removes the file if it is still ours. Harmless when there is none. */
void listen_socket_close(struct listen_socket *);

/* Takes a socket over; on failure it is closed. 0 or -ENOMEM. */
int listen_socket_list_add(struct listen_socket_list *, const struct listen_socket *);
/* Adds other descriptors of a socket, and of those behind it, but none of a copy. 0 or -errno. */
int listen_socket_list_add_copies(struct listen_socket_list *, const struct listen_socket *);
void listen_socket_list_fini(struct listen_socket_list *);
