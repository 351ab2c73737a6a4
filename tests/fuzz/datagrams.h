/*
 * Simulated UDP sockets: datagrams between devices and a program in one process, on 127.0.0.1, without the kernel. The
 * linker sends the devices' system calls here (--wrap). A device reads what came in a later turn; the program is called at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnic/rnic.h"

/* A datagram to a port without a socket. No call of a device. */
typedef void (*datagrams_sink)(void *ctx, uint16_t from, uint16_t to, const uint8_t *bytes, size_t len);

void datagrams_init(datagrams_sink, void *ctx);
/* All descriptors were closed. */
void datagrams_fini(void);
/* After so many calls, the next socket() or sendmsg() fails with err. */
void datagrams_fail_socket(unsigned after, int err);
void datagrams_fail_send(unsigned after, int err);
/* A sendmsg() has failed with EMSGSIZE. */
bool datagrams_path_is_narrow(void);
struct rnic_loop datagrams_loop(void);
/* Callbacks of descriptors that are ready: true when there was one. */
bool datagrams_turn(void);
/* From a port of the program's to a device's. */
void datagrams_send(uint16_t from, uint16_t to, const void *, size_t len);
