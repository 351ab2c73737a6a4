/*
 * Descriptors of every kind, to be passed to another process: listening sockets like a daemon's, and others.
 * They are there for the whole run, with their files in a directory that is removed at its end.
 */
#pragma once

#include <stddef.h>

#include "daemon/net/listen_socket.h"

enum descriptor {
	DESC_CONTROL, /* listening UNIX sockets, each with a file */
	DESC_READONLY,
	DESC_UNIX,
	DESC_TCP4, /* listening, two of one address */
	DESC_TCP4_TWIN,
	DESC_TCP6,
	DESC_BOUND, /* a UNIX socket with a file that does not listen */
	DESC_FRESH, /* TCP, without an address */
	DESC_UDP,
	DESC_SEQPACKET, /* listens, but not for streams */
	DESC_DATAGRAM,
	DESC_ABSTRACT, /* listens at a name that is no file */
	DESC_PIPE,
	DESC_NULL,
	DESC_DIR,
	DESC_EPOLL,
	DESC_CNT,
};

/* Before each input: makes those that are not there yet, and those whose file was removed. */
void descriptors_begin(void);
int descriptors_fd(enum descriptor);
/* "" when it has no file. */
const char *descriptors_path(enum descriptor);
/* The path of a file of this name in the directory; there is one of a regular file, "file". */
const char *descriptors_path_of(const char *name);
/* As a daemon would have it. */
struct listen_socket descriptors_lsock(enum descriptor);
/* Files that were not handed over are not removed: the regular file, and that of the socket that does not listen. */
void descriptors_check(void);
/* How many descriptors this process has open. */
unsigned descriptors_open(void);
/* Bytes with cnt times this descriptor, without waiting: what finds no room is lost. */
void descriptors_send(int sock, const void *, size_t len, int fd, unsigned cnt);
