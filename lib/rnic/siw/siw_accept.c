/* Soft iWARP: the listening port of a device; see siw_int.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "rnic/siw/siw_int.h"

#define ACCEPT_BUDGET 64
#define ACCEPT_RETRY_MS 100

/* A spare at the device's address and in its range, unused by other devices: its descriptor, or -EADDRINUSE. */
static int
take_spare(struct siw_dev *dev)
{
	for (unsigned i = 0; i < dev->cfg.spare_cnt; i++) {
		struct siw_spare *spare = &dev->cfg.spares[i];
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);

		if (spare->used || getsockname(spare->fd, (struct sockaddr *)&ss, &len) != 0 ||
		    !addr_same_host(&ss, &dev->cfg.addr) || addr_port(&ss) < dev->cfg.port_min ||
		    addr_port(&ss) > dev->cfg.port_max)
			continue;
		int fd = fcntl(spare->fd, F_DUPFD_CLOEXEC, 0);
		spare->used = fd >= 0;
		return fd >= 0 ? fd : -errno;
	}
	return -EADDRINUSE;
}

int
siw_open_port(struct siw_dev *dev, int (*open_on)(const struct siw_config *, uint16_t port), rnic_io_cb ready,
    void *arg, const char **err)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	uint32_t port = dev->cfg.port_min;
	int fd = dev->cfg.transport == SIW_TCP ? take_spare(dev) : -EADDRINUSE;

	for (; fd == -EADDRINUSE && port <= dev->cfg.port_max; port++)
		fd = open_on(&dev->cfg, (uint16_t)port);
	if (fd < 0) {
		*err = fd == -EADDRINUSE ? "no free port in the range" : "address";
		return fd;
	}
	(void)getsockname(fd, (struct sockaddr *)&ss, &len);
	dev->port = addr_port(&ss);
	int rc = dev->loop.watch(dev->loop.ctx, fd, ready, arg);
	if (rc < 0) {
		*err = "event loop";
		close(fd);
		return rc;
	}
	return fd;
}

void
siw_acceptor_run(struct siw_acceptor *a)
{
	struct siw_dev *dev = a->dev;

	dev->unfinished = false;
	if (a->fd < 0)
		return;
	for (unsigned i = 0; i < ACCEPT_BUDGET; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int fd = accept4(a->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			a->accepted(dev, fd, &from);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)
			continue;
		/* Out of descriptors or memory: the connection stays in the backlog without a wake-up. */
		dev->stats.accept_pauses++;
		siw_arm(dev, &a->retry, ACCEPT_RETRY_MS);
		return;
	}
	dev->unfinished = true;
}

static void
siw_accept_retry(struct timer *t)
{
	siw_acceptor_run(CONTAINER_OF(t, struct siw_acceptor, retry));
}

static void
ready(void *arg, int fd, unsigned events)
{
	(void)fd;
	(void)events;
	siw_acceptor_run(arg);
}

int
siw_acceptor_open(struct siw_acceptor *a, struct siw_dev *dev, int (*open_on)(const struct siw_config *, uint16_t port),
    void (*accepted)(struct siw_dev *, int fd, const struct sockaddr_storage *from), const char **err)
{
	*a = (struct siw_acceptor){ .dev = dev, .accepted = accepted };
	timer_init(&a->retry, siw_accept_retry);
	a->fd = timerq_reserve(&dev->timers, 1);
	if (a->fd < 0) {
		*err = "memory";
		return a->fd;
	}
	a->fd = siw_open_port(dev, open_on, ready, a, err);
	if (dev->cfg.transport == SIW_TCP)
		dev->acceptor = a;
	return a->fd < 0 ? a->fd : 0;
}

void
siw_acceptor_close(struct siw_acceptor *a)
{
	timer_cancel(&a->dev->timers, &a->retry);
	if (a->fd < 0)
		return;
	a->dev->loop.unwatch(a->dev->loop.ctx, a->fd);
	close(a->fd);
	a->fd = -1;
}
