/* The PROXY protocol header: the client's address, for a server, and from a balancer (haproxy's doc/proxy-protocol.txt,
 * v1 and v2). Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "daemon/config/config.h"
#include "daemon/net/net.h"

#define PROXY_HEADER_MAX 108 /* longest line of version 1 and a NUL; version 2 with IPv6 has 52 bytes */

/* Writes the header for a connection from src to dst into buf (PROXY_HEADER_MAX bytes). Returns its length, 0 with
 * CONFIG_PROXY_OFF. Addresses of different families are written as IPv6, IPv4 mapped. For a client on a UNIX socket
 * version 1 has UNKNOWN, version 2 LOCAL, as in haproxy. */
size_t proxy_header(enum config_proxy, const union net_addr *src, const union net_addr *dst, uint8_t *buf);

#define PROXY_READ_MAX 4096 /* longest header that is taken: version 2 with many TLVs */

/* Reads a header, with its TLVs, which are skipped. > 0: its length, and the client; family 0 for LOCAL, UNKNOWN, UNSPEC
 * or a UNIX socket: the sender speaks for itself. 0: more bytes are needed. -EBADMSG, with *why, static. */
int proxy_header_decode(struct span, struct sockaddr_storage *client, const char **why);
