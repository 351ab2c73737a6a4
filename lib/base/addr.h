/* Socket addresses as people write them: "192.0.2.1:80", "[2001:db8::1]:80", "[fe80::1%eth0]:80", "unix:/run/s". Numeric
 * only; no I/O but the lookup of an interface name. An IPv4-mapped IPv6 address becomes IPv4. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_STR_MAX 116  /* any address with port, and its NUL; a UNIX socket's path is the longest */
#define ADDR_UNIX "unix:" /* in front of a UNIX socket's path */

/* An address without port (IPv6 with or without brackets). 0 or -EINVAL. */
int addr_parse(const char *text, struct sockaddr_storage *out);
/* Splits at the last colon: "host:port", "[v6]:port". 0 or -EINVAL; host_cap includes the NUL, port is 1..65535. */
int addr_split(const char *text, char *host, size_t host_cap, uint16_t *port);
/* "address:port". 0 or -EINVAL. */
int addr_parse_port(const char *text, struct sockaddr_storage *out);
/* "unix:/path" of at most 107 bytes: absolute, no blanks, quotes, backslashes or control characters. 0, -EINVAL or
 * -ENAMETOOLONG. Abstract sockets, "unix:@name", have
 * neither owner nor mode, so that everybody may take the name or connect: -EPERM. */
int addr_parse_unix(const char *text, struct sockaddr_storage *out);
/* Is it meant as a UNIX socket, well written or not? */
bool addr_is_unix_text(const char *text);

/* An address as text in buf, which is returned; "?" for another family than these. A UNIX socket's is "unix:/path" in both. */
char *addr_format(const struct sockaddr_storage *, char *buf, size_t cap);      /* address alone, no brackets */
char *addr_format_port(const struct sockaddr_storage *, char *buf, size_t cap); /* with port */

/* The path of a UNIX socket; "" when it has none. */
const char *addr_path(const struct sockaddr_storage *);
uint16_t addr_port(const struct sockaddr_storage *); /* 0 of a UNIX socket */
void addr_set_port(struct sockaddr_storage *, uint16_t port);
socklen_t addr_len(const struct sockaddr_storage *);
bool addr_is_any(const struct sockaddr_storage *);
bool addr_is_loopback(const struct sockaddr_storage *);
/* May other hosts reach who listens there? Neither a UNIX socket nor a loopback address. */
bool addr_is_exposed(const struct sockaddr_storage *);
/* Same family and address (and scope), or path; the port is not looked at. */
bool addr_same_host(const struct sockaddr_storage *, const struct sockaddr_storage *);
/* ... and the same port. */
bool addr_same_place(const struct sockaddr_storage *, const struct sockaddr_storage *);
/* The place that the pattern names; a pattern without port stands for every place of its host. */
bool addr_matches(const struct sockaddr_storage *pattern, const struct sockaddr_storage *);
/* As IPv6 in network order; IPv4 mapped. */
void addr_to_v6(const struct sockaddr_storage *, uint8_t out[16]);
/* Are the first `bits` bits of two addresses in network order the same? */
bool addr_same_prefix(const uint8_t *, const uint8_t *, unsigned bits);
/* How many leading bits of an address in network order identify its host: an IPv6 host chooses its lower 64 as it likes,
 * and changes them. */
unsigned addr_source_bits(const uint8_t addr[16]);
/* As addr_to_v6, the other way, with a port. */
void addr_from_v6(const uint8_t addr[16], uint16_t port, struct sockaddr_storage *out);
