/* Classes of source ports; see net/worker_port.h. */
#include "daemon/net/worker_port.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/addr.h"

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

#define TRIES 16 /* ports that are in use or reserved */
#define IPV6_HEADER 40
#define RANGE "/proc/sys/net/ipv4/ip_local_port_range"

void
worker_ports_init(struct worker_ports *p, unsigned nr, unsigned cnt, uint32_t start)
{
	unsigned low = 0, high = 0;
	FILE *f = cnt > 1 ? fopen(RANGE, "re") : NULL;

	if (f == NULL || fscanf(f, "%u %u", &low, &high) != 2 || low > high || high > UINT16_MAX ||
	    high - low < 2 * cnt)
		cnt = 1;
	if (f != NULL)
		(void)fclose(f);
	*p = (struct worker_ports){ .low = (uint16_t)low, .high = (uint16_t)high, .nr = nr, .cnt = cnt, .next = start };
}

/* Even ports of the class in sequence: a listener that counts halves sees each of its workers in turn. */
static uint16_t
next_port(struct worker_ports *p)
{
	const uint32_t first = (p->low + 1u) / 2, halves = p->high / 2u - first + 1;
	uint32_t half;

	do
		half = first + p->next++ % halves;
	while (half % p->cnt != p->nr);
	return (uint16_t)(half * 2);
}

/* low 0: the system's range */
static int
set_range(int fd, uint16_t low)
{
	const uint32_t range = (uint32_t)low << 16 | low;

	return setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof(range));
}

int
worker_ports_connect(struct worker_ports *p, int fd, const struct sockaddr_storage *to)
{
	const struct sockaddr *sa = (const void *)to;

	for (int i = 0; i < TRIES && p->cnt > 1; i++) {
		if (set_range(fd, next_port(p)) != 0) {
			p->cnt = 1;
			break;
		}
		int rc = connect(fd, sa, addr_len(to));
		if (rc == 0 || errno != EADDRNOTAVAIL)
			return rc;
	}
	if (p->cnt > 1)
		(void)set_range(fd, 0);
	return connect(fd, sa, addr_len(to));
}

int
worker_ports_deal(int fd, unsigned cnt)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 3, 0),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, (uint32_t)SKF_NET_OFF), /* the length of IPv4's header */
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, (uint32_t)SKF_NET_OFF),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)(SKF_NET_OFF + IPV6_HEADER)),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, cnt),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	const struct sock_fprog prog = { sizeof(program) / sizeof(program[0]), program };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)) == 0 ? 0 : -errno;
}
