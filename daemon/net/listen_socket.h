/* Listening sockets. A UNIX socket that this process names (control or service) has a file. It is created,
 * distinguished from that of a live process, and removed at the end. Called by process/smcrd_open.c, control.c and
 * reload.c. Plain data, moved by copying; owned by the holder. */
#pragma once

#include <stdio.h>
#include <sys/types.h>
#include <sys/un.h>

#include "daemon/config/config.h"

struct listen_socket {
	int fd;         /* -1 = not open */
	int lock;       /* of the directory, until listen(); -1 = not locked */
	bool elsewhere; /* another process shares the socket: systemd, an earlier or a later daemon */
	/* Our file; "" = no file: a TCP socket, or one of systemd's. */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev;
	ino_t ino;
	bool lent;   /* another process has or gets the file: closing keeps it */
	bool copy;   /* of a socket of another worker */
	bool unit;   /* of a socket unit, which systemd keeps open */
	bool shared; /* it is a copy, or has copies */
	/* More sockets of the same address, when more were passed than there are workers; owned by this one. */
	struct listen_socket *next;
};

#define LISTEN_SOCKET_NONE ((struct listen_socket){ .fd = -1, .lock = -1 })

/* Sockets to hand over; their files stay when the list is freed. */
struct listen_socket_list {
	struct listen_socket *v;
	unsigned cnt, cap;
};

/* The wanted properties of a file. */
struct listen_socket_file {
	const char *what; /* prefix of messages: "control socket" */
	const char *path;
	uint32_t mode;
	uid_t owner; /* -1 = the process's own */
	gid_t group; /* -1 = the process's own, or the directory's */
	bool waits;  /* wait for another process that has locked the directory; not allowed in a running loop */
};

/* A socket without a file of ours; LISTEN_SOCKET_NONE for a negative descriptor. */
struct listen_socket listen_socket_of_fd(int fd);
/* Another descriptor of the socket, for another accepting thread; the file stays with the first. fd -1: see errno. */
struct listen_socket listen_socket_copy(const struct listen_socket *);
/* Appends a socket of the same address to another one, which then owns it. 0 or -ENOMEM. */
int listen_socket_append(struct listen_socket *, const struct listen_socket *more);
/* Also sets those appended to it, and `elsewhere` with it. */
void listen_socket_set_lent(struct listen_socket *, bool lent);
/* Could the file be created now? Changes nothing. 0; -EADDRINUSE: a process listens there; or -errno. With a line in err. */
int listen_socket_try(const struct listen_socket_file *, FILE *err);
/* Creates the file; connects fail until listen_socket_start. Replaces a dead socket. 0, or -errno and a line in err. */
int listen_socket_open(struct listen_socket *, const struct listen_socket_file *, FILE *err);
/* Clients may connect after this. 0, or -errno with one line in err. */
int listen_socket_start(struct listen_socket *, const char *what, int backlog, FILE *err);
/* Both for the UNIX socket of a service; waits as above. 0, or -errno with one line in err. */
int listen_socket_listen(struct listen_socket *, const struct config_service *, bool waits, FILE *err);
/* Does it listen for streams at this address? A socket unit may have ListenDatagram= or Accept=yes. */
bool listen_socket_listens_at(const struct listen_socket *, const struct sockaddr_storage *);
/* It and those appended to it, for a service with capture = "tproxy". 0, or -errno with one line in err, which ends so. */
int listen_socket_capture(const struct listen_socket *, const struct config_service *, const char *more, FILE *err);
/* Closes the descriptor and removes the file if it is still ours. Does nothing without a descriptor. */
void listen_socket_close(struct listen_socket *);

/* Takes over a socket; closes it on failure. 0 or -ENOMEM. */
int listen_socket_list_add(struct listen_socket_list *, const struct listen_socket *);
/* Adds other descriptors of a socket and of those appended to it, but not of copies. 0 or -errno. */
int listen_socket_list_add_copies(struct listen_socket_list *, const struct listen_socket *);
void listen_socket_list_fini(struct listen_socket_list *);
