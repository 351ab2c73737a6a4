/* The netlink socket; see netwatch.h. */
#include "daemon/device/netwatch.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"

#define BUF_BYTES 32768 /* most bytes that the kernel writes into a part of a dump */
#define DUMP_TRIES 10

/* A netlink socket in these groups; only the kernel can send to it. */
static int
open_netlink(unsigned groups)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)(const void *)&nl, sizeof(nl)) == 0) {
		nl.nl_groups = 0;
		if (connect(fd, (const struct sockaddr *)(const void *)&nl, sizeof(nl)) == 0)
			return fd;
	}
	err = -errno;
	close(fd);
	return err;
}

/* Applies messages to a table: 1 when it has changed, 0 when not, or -errno. *end: the last message of a dump was
 * among them; *torn: the dumped objects changed meanwhile. */
static int
apply(struct netifs *table, const struct nlmsghdr *nh, size_t len, bool *end, bool *torn)
{
	int changed = 0;

	for (; NLMSG_OK(nh, len) && !*end; nh = NLMSG_NEXT(nh, len)) {
		int rc = nh->nlmsg_type == NLMSG_ERROR ? -EIO : netifs_apply(table, nh);

		if (rc < 0)
			return rc;
		changed |= rc;
		*torn = *torn || (nh->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		*end = nh->nlmsg_type == NLMSG_DONE;
	}
	return changed;
}

/* Reads all objects of a kind. The kernel creates each part on the read, so nothing blocks. *torn: they changed. */
static int
dump(int fd, uint16_t type, struct netifs *table, void *buf, bool *torn)
{
	const struct {
		struct nlmsghdr nh;
		struct rtgenmsg gen;
	} ask = {
		.nh = { .nlmsg_len = NLMSG_LENGTH(sizeof(ask.gen)),
		    .nlmsg_type = type,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.gen = { .rtgen_family = AF_UNSPEC },
	};
	bool end = false;
	int rc = 0;

	if (send(fd, &ask, ask.nh.nlmsg_len, 0) < 0)
		return -errno;
	while (rc >= 0 && !end) {
		ssize_t n = recv(fd, buf, BUF_BYTES, 0);

		if (n < 0 && errno == EINTR)
			continue;
		rc = n < 0 ? -errno : apply(table, buf, (size_t)n, &end, torn);
	}
	return rc < 0 ? rc : 0;
}

int
netwatch_read(struct netifs *out)
{
	_Alignas(struct nlmsghdr) uint8_t buf[BUF_BYTES];
	struct netifs table = { 0 };
	int fd = open_netlink(0), rc = fd < 0 ? fd : 0;
	bool torn = true;

	for (unsigned i = 0; rc == 0 && torn && i < DUMP_TRIES; i++) {
		torn = false;
		netifs_fini(&table);
		rc = dump(fd, RTM_GETLINK, &table, buf, &torn);
		if (rc == 0)
			rc = dump(fd, RTM_GETADDR, &table, buf, &torn);
	}
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		*out = table;
	else
		netifs_fini(&table);
	return rc;
}

static void
read_again(struct netwatch *nw)
{
	struct netifs table;
	int rc = netwatch_read(&table);

	if (rc != 0) {
		log_msg(LOG_LVL_WARNING, "cannot read the network interfaces again: error=\"%s\"", strerror(-rc));
		return;
	}
	netifs_fini(&nw->table);
	nw->table = table;
	nw->changed = true;
}

static void
on_events(struct loop_io *io, unsigned events)
{
	struct netwatch *nw = CONTAINER_OF(io, struct netwatch, io);
	_Alignas(struct nlmsghdr) uint8_t buf[BUF_BYTES];
	bool lost = false;

	(void)events;
	/* To the end, also after a loss: older messages must not be applied to the new table. */
	for (;;) {
		ssize_t n = recv(io->fd, buf, sizeof(buf), MSG_TRUNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ENOBUFS)
			break;
		bool end = false, torn = false;
		int rc = n < 0 || (size_t)n > sizeof(buf) ? -ENOBUFS
		                                          : apply(&nw->table, (void *)buf, (size_t)n, &end, &torn);
		if (rc < 0)
			lost = true;
		else if (rc > 0)
			nw->changed = true;
	}
	if (lost) {
		nw->overruns++;
		read_again(nw);
	}
}

int
netwatch_init(struct netwatch *nw, struct loop *loop)
{
	const int fd = open_netlink(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);

	*nw = (struct netwatch){ .loop = loop, .io = { .fd = fd, .cb = on_events } };
	int rc = fd < 0 ? fd : loop_add(loop, &nw->io);
	if (rc != 0) {
		log_msg(LOG_LVL_WARNING, "network interfaces are not followed: error=\"%s\"", strerror(-rc));
		if (fd >= 0)
			close(fd);
		nw->io.fd = -1;
	}
	/* After opening the socket: its queue has the changes in between. */
	return netwatch_read(&nw->table);
}

void
netwatch_fini(struct netwatch *nw)
{
	if (nw->io.fd >= 0) {
		loop_del(nw->loop, &nw->io);
		close(nw->io.fd);
	}
	netifs_fini(&nw->table);
}

void
netwatch_reload(struct netwatch *nw)
{
	if (nw->io.fd < 0)
		read_again(nw);
}

bool
netwatch_take_change(struct netwatch *nw)
{
	bool changed = nw->changed;

	nw->changed = false;
	return changed;
}
