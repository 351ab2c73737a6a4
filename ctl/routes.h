/* Routes for services that connect by their clients' addresses (client_address = "connect"): lines for a shell that bring the answers of
 * the server back to this host. The daemon and smcrctl set none. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

/* Where a server is. */
enum routes_place {
	ROUTES_LOOPBACK,
	ROUTES_HERE,  /* another address of this host */
	ROUTES_THERE, /* another host, whose way to the clients leads over this one */
};

/* By asking the kernel; nothing is sent. */
enum routes_place routes_place_of(const struct sockaddr_storage *server);
/* Prints the lines for the service of this answer ("data" of the command service). NULL, or the reason for no lines. */
const char *routes_print(FILE *, const json_t *data, enum routes_place (*place)(const struct sockaddr_storage *));
