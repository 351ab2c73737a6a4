/* Connecting a leg; see dial.h. */
#include "daemon/session/dial.h"

#include <errno.h>

void
dial_init(struct dial *d, struct leg *leg, const struct sockaddr_storage *addrs, unsigned cnt)
{
	*d = (struct dial){ .leg = leg, .addrs = addrs, .cnt = cnt };
}

int
dial_next(struct dial *d, struct loop *loop, const struct config_keepalive *ka, int why)
{
	leg_close(d->leg, loop, true);
	d->busy = false;
	if (why != 0)
		d->err = why;
	while (d->next < d->cnt) {
		int fd = net_connect(&d->addrs[d->next++], ka), err = fd;

		if (fd >= 0) {
			err = leg_open(d->leg, loop, fd);
			if (err == 0) {
				d->busy = true;
				return 0;
			}
		}
		d->err = -err;
	}
	return d->err != 0 ? -d->err : -EADDRNOTAVAIL;
}

int
dial_check(struct dial *d)
{
	int err;

	if ((d->leg->flags & (LEG_WRITABLE | LEG_ERROR | LEG_HUP)) == 0)
		return 0;
	err = net_error(d->leg->io.fd);
	if (err == 0 && (d->leg->flags & LEG_WRITABLE) == 0)
		return 0;
	d->leg->flags &= ~(unsigned)LEG_ERROR;
	d->err = err;
	d->busy = err == 0 ? false : d->busy;
	return err == 0 ? 1 : -err;
}

const struct sockaddr_storage *
dial_addr(const struct dial *d)
{
	return &d->addrs[d->next > 0 ? d->next - 1 : 0];
}
