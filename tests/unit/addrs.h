/* Addresses in tests, by their text. */
#pragma once

#include "base/addr.h"
#include "checks.h"
#include "rnic/rnic.h"

static inline struct sockaddr_storage
addr_of(const char *text)
{
	struct sockaddr_storage ss;

	ck_assert_int_eq(addr_parse(text, &ss), 0);
	return ss;
}

static inline struct rnic_gid
gid_of(const char *text)
{
	struct sockaddr_storage ss = addr_of(text);
	struct rnic_gid gid;

	addr_to_v6(&ss, gid.b);
	return gid;
}
