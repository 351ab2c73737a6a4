/* Opened with all rights; see early.h. */
#include "daemon/early.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/addr.h"
#include "daemon/net.h"

#define LOW_PORTS 1024

int
early_open(struct early *e, const struct config *cfg, FILE *err)
{
	int n = sd_listen_fds(1);

	*e = (struct early){ .control = { .fd = -1, .lock = -1 } };
	if (n < 0 || n > CONFIG_SERVICES_MAX) {
		fprintf(err, "sockets passed by systemd: %s\n", n < 0 ? strerror(-n) : "too many");
		return -EINVAL;
	}
	for (int i = 0; i < n; i++)
		e->fds[e->fd_cnt++] = SD_LISTEN_FDS_START + i;
	for (unsigned i = 0; i < cfg->service_cnt && e->fd_cnt < CONFIG_SERVICES_MAX; i++) {
		const struct sockaddr_storage *at = &cfg->services[i].listen;
		int fd = addr_port(at) < LOW_PORTS ? net_listen(at, false) : -1;

		if (fd >= 0)
			e->fds[e->fd_cnt++] = fd;
	}
	return control_listen_open(&e->control, cfg->control_path, cfg->control_mode, err);
}

void
early_close(struct early *e)
{
	control_listen_close(&e->control);
}
