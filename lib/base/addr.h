/* Socket addresses as text: "192.0.2.1:80", "[2001:db8::1]:80", "[fe80::1%eth0]:80", "unix:/run/s". Numeric only; the
 * one system access is the lookup of interface names. An IPv4-mapped IPv6 address becomes IPv4. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_STR_MAX 116  /* any address with port and NUL; UNIX socket paths are the longest */
#define ADDR_UNIX "unix:" /* prefix of a UNIX socket path */

/* An address without port, IPv6 with or without brackets. 0 or -EINVAL. */
int addr_parse(const char *text, struct sockaddr_storage *out);
/* Splits at the last colon: "host:port", "[v6]:port". 0 or -EINVAL; host_cap includes the NUL, port is 1..65535. */
int addr_split(const char *text, char *host, size_t host_cap, uint16_t *port);
/* "address:port". 0 or -EINVAL. */
int addr_parse_port(const char *text, struct sockaddr_storage *out);
/* "unix:/path" of at most 107 bytes: absolute, no blanks, quotes, backslashes or control characters. 0, -EINVAL or
 * -ENAMETOOLONG. -EPERM for an abstract socket ("unix:@name"), which any process may bind or connect. */
int addr_parse_unix(const char *text, struct sockaddr_storage *out);
/* Text with the prefix "unix:", valid or not. */
bool addr_is_unix_text(const char *text);

/* Formats into buf and returns it; "?" for an unknown family. Both give "unix:/path" for a UNIX socket. */
char *addr_format(const struct sockaddr_storage *, char *buf, size_t cap);      /* address alone, no brackets */
char *addr_format_port(const struct sockaddr_storage *, char *buf, size_t cap); /* with port */

/* The path of a UNIX socket; "" if it has no path. */
const char *addr_path(const struct sockaddr_storage *);
uint16_t addr_port(const struct sockaddr_storage *); /* 0 for a UNIX socket */
void addr_set_port(struct sockaddr_storage *, uint16_t port);
socklen_t addr_len(const struct sockaddr_storage *);
bool addr_is_any(const struct sockaddr_storage *);
bool addr_is_loopback(const struct sockaddr_storage *);
bool addr_is_multicast(const struct sockaddr_storage *); /* or IPv4's broadcast address */
/* Other hosts can reach this listening address: not a UNIX socket, not loopback. */
bool addr_is_exposed(const struct sockaddr_storage *);
/* Same family, address and scope, or same path; ignores the port. */
bool addr_same_host(const struct sockaddr_storage *, const struct sockaddr_storage *);
/* addr_same_host() and the same port. */
bool addr_same_place(const struct sockaddr_storage *, const struct sockaddr_storage *);
/* Of two listening addresses: would the kernel refuse the second bind, or would the second take connections from the
 * first? A wildcard IPv6 socket counts as dual-stack, so [::] overlaps IPv4 addresses as well. */
bool addr_overlaps(const struct sockaddr_storage *, const struct sockaddr_storage *);
/* The pattern names this address; a pattern with port 0 matches every port of its host. */
bool addr_matches(const struct sockaddr_storage *pattern, const struct sockaddr_storage *);
/* As IPv6 in network order; IPv4 as mapped. */
void addr_to_v6(const struct sockaddr_storage *, uint8_t out[16]);
/* The first `bits` bits of two addresses in network order are equal. */
bool addr_same_prefix(const uint8_t *, const uint8_t *, unsigned bits);
/* Leading bits of an address in network order that identify its host; an IPv6 host changes its lower 64 bits. */
unsigned addr_source_bits(const uint8_t addr[16]);
/* Inverse of addr_to_v6(), with a port. */
void addr_from_v6(const uint8_t addr[16], uint16_t port, struct sockaddr_storage *out);
