/* Soft iWARP over the kernel's SCTP keeps to rnic.h as it does over TCP. */
#define OVER_SCTP 1
#define SCTP_STACK SIW_STACK_KERNEL
#include "check_siw.c"

#include <sys/socket.h>

#include "base/addr.h"

static void
two_addresses(struct siw_config *c, const char *first, const char *second)
{
	*c = config();
	ck_assert_int_eq(addr_parse(first, &c->addr), 0);
	c->more_addrs.cnt = 1;
	ck_assert_int_eq(addr_parse(second, &c->more_addrs.at[0]), 0);
}

/* Both are paths, one of them the primary one, and heartbeats confirm the other. */
START_TEST(each_address_of_the_peer_is_a_path)
{
	struct siw_config ca, cb;
	struct rnic_conn_info info;
	uint8_t first[16], second[16];

	two_addresses(&ca, "127.0.0.1", "127.0.0.2");
	two_addresses(&cb, "127.0.0.3", "127.0.0.4");
	open_both(&ca, &cb);
	connect_ends();
	addr_to_v6(&cb.addr, first);
	addr_to_v6(&cb.more_addrs.at[0], second);
	UNTIL(info = rnic_conn_info(a.qp),
	    info.path_cnt == 2 && info.paths[0].state == RNIC_PATH_ACTIVE && info.paths[1].state == RNIC_PATH_ACTIVE);
	ck_assert_uint_eq(info.paths[0].primary + info.paths[1].primary, 1);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_mem_eq(info.paths[i].to.b, info.paths[i].primary ? first : second, 16);
}

static const char *
no_sctp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	if (fd < 0)
		return "the kernel has no SCTP";
	close(fd);
	return NULL;
}

UNIT_NEEDS(no_sctp);
