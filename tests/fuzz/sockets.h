/*
 * Simulated TCP sockets: connections between a device and a program, or between two devices, in one process,
 * without the kernel. The linker sends the devices' system calls here (--wrap). How the bytes arrive is the program's
 * to say: in pieces, late, cut off. A call can be made to fail.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnic/rnic.h"

#define SOCKETS_MAX 320
#define SOCKET_BUF (96u * 1024)

/* Calls that fail, each once for every bit that is set, with sockets_fail's errno. */
enum {
	SOCKETS_FAIL_SOCKET = 1 << 0,
	SOCKETS_FAIL_ACCEPT = 1 << 1,
	SOCKETS_FAIL_SEND = 1 << 2,
	SOCKETS_FAIL_RECV = 1 << 3,
	SOCKETS_FAIL_CONNECT = 1 << 4,
	SOCKETS_FAIL_WATCH = 1 << 5,
	SOCKETS_FAIL_ALL = (1 << 6) - 1,
};

void sockets_init(void);
/* All descriptors were closed. */
void sockets_fini(void);
void sockets_fail(unsigned what, unsigned after, int err);
struct rnic_loop sockets_loop(void);
/* Callbacks of descriptors that are ready: true when there was one. */
bool sockets_turn(void);

/* -- the program's own ends; each is a descriptor, -1 = none -- */

/* Connects to a listening port. */
int sockets_dial(uint16_t port);
/* A connection of a device to a port without a listener, which it awaits: the oldest that was not taken yet. */
int sockets_take(void);
/* The same is refused. */
void sockets_refuse(void);
size_t sockets_send(int fd, const void *, size_t len);
size_t sockets_recv(int fd, void *, size_t cap);
/* What this end sends reaches the other one in pieces of so many bytes a turn; 0 = as it comes. */
void sockets_pieces(int fd, uint32_t len);
/* So many bytes this end takes before it reads none; SOCKET_BUF = the default. */
void sockets_window(int fd, uint32_t len);
void sockets_fin(int fd);
void sockets_reset(int fd);
/* The other end has closed, or reset. */
bool sockets_over(int fd);
void sockets_close(int fd);
