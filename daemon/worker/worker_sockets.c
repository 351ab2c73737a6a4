/* The listening sockets of a worker's services for a hand-over to another process; see worker.h. */
#include "daemon/device/devices.h"
#include "daemon/service/service.h"
#include "daemon/worker/worker.h"

int
worker_add_sockets(struct worker *w, struct listen_socket_list *out)
{
	int rc = 0;

	LIST_EACH(const struct service, svc, &worker_sessions(w)->services, node)
		/* The closed socket of a disabled service is not handed over. */
		if (rc == 0 && svc->listener.mode != LISTENER_SHUT)
			rc = listen_socket_list_add_copies(out, &svc->listener.sock);
	return rc;
}

int
worker_add_ports(struct worker *w, struct listen_socket_list *out)
{
	return devices_add_ports(worker_devices(w), out);
}

void
worker_lend_sockets(struct worker *w, bool lent)
{
	LIST_EACH(struct service, svc, &worker_sessions(w)->services, node)
		listen_socket_set_lent(&svc->listener.sock, lent);
}

void
worker_release_sockets(struct worker *w)
{
	worker_lend_sockets(w, true);
	LIST_EACH(struct service, svc, &worker_sessions(w)->services, node)
		service_stop(svc);
}
