/* The worker as main and the control socket use it: start, reload, drain, end, passed sockets, prewarm, check, what it
 * tells about itself. Engine and device are the stand-in of fake_smcr.c. */
#include "daemon/worker/worker.h"

#include <fcntl.h>

#include "addrs.h"
#include "captured.h"
#include "gateway.h"
#include "unit.h"

/* The devices in the configuration; they are the test's. */
static void
devices_are(struct config_device *devices, unsigned cnt)
{
	gw.cfg.devices = devices;
	gw.cfg.device_cnt = cnt;
}

static bool
refuses(const struct sockaddr_storage *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool refused = connect(fd, (const struct sockaddr *)addr, sizeof(struct sockaddr_in)) != 0 &&
	    errno == ECONNREFUSED;

	close(fd);
	return refused;
}

UNIT_FIXTURE(gw_setup, gw_teardown);

/* -- start -- */

START_TEST(a_port_in_use_is_reported_and_nothing_is_left)
{
	int taken = gw_listen(&gw.svc[GW_OUT].listen);
	char addr[ADDR_STR_MAX];

	ck_assert_int_eq(gw_try_start(NULL, 0), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(gw.err, "out"));
	ck_assert_ptr_nonnull(strstr(gw.err, addr_format(&gw.svc[GW_OUT].listen, addr, sizeof(addr))));
	ck_assert_ptr_null(gw.w);
	ck_assert(refuses(&gw.svc[GW_IN].listen));
	close(taken);
	gw.svc[GW_OUT].listen = gw.peer_addrs[0];
	gw_begin();
}

START_TEST(a_device_that_does_not_open_is_reported)
{
	struct config_device devs[2] = {
		{ .name = "siw0", .addr = gw.server_addrs[0] },
		{ .name = "broken" },
	};

	devs[1].siw.port_min = 7471;
	devs[1].siw.port_max = 7570;
	devices_are(devs, 2);
	ck_assert_int_eq(gw_try_start(NULL, 0), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(gw.err, "broken"));
	ck_assert_ptr_nonnull(strstr(gw.err, ", mpa_ports = \"7471-7570\": Address already in use\n"));
	gw.cfg.device_cnt = 1;
	gw_start();
	ck_assert_ptr_nonnull(devices_get(worker_devices(gw.w), 0));
	ck_assert_ptr_null(devices_get(worker_devices(gw.w), 1));
	gw.cfg.device_cnt = 0;
}

static bool
may_dial(const char *to, const char *middle)
{
	const struct rnic_gid gid = gid_of(to), from = gid_of(middle);
	struct smcr_identity id = { 0 };

	memcpy(id.addr, from.b, sizeof(id.addr));
	return fake_dial_policy.may(fake_dial_policy.ctx, &gid, &id);
}

START_TEST(a_server_may_name_its_own_address_or_a_network_of_ours)
{
	/* 192.0.2.0/25 and 2001:db8::/32 */
	struct config_net nets[2] = {
		{ .addr = { [10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2 }, .prefix_len = 121 },
		{ .addr = { 0x20, 0x01, 0x0d, 0xb8 }, .prefix_len = 32 },
	};
	struct config_net any = { .prefix_len = 0 };
	struct config_device dev = { .name = "siw0", .addr = addr_of("127.0.0.1") };

	devices_are(&dev, 1);
	gw_start();
	ck_assert(may_dial("192.0.2.9", "192.0.2.9"));
	ck_assert(may_dial("2001:db8::9", "2001:db8::9"));
	ck_assert(!may_dial("192.0.2.9", "192.0.2.10"));
	ck_assert(may_dial("127.1.2.3", "192.0.2.9")); /* 127.0.0.1/8 on the loopback interface */
	ck_assert(!may_dial("128.1.2.3", "192.0.2.9"));
	ck_assert(!may_dial("::1", "192.0.2.9"));
	ck_assert(!may_dial("7f00::1", "192.0.2.9"));
	/* A list counts in its place, from the next connection on. */
	gw.cfg.mpa_peers = nets;
	gw.cfg.mpa_peers_cnt = 2;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(may_dial("192.0.2.9", "10.0.0.1"));
	ck_assert(!may_dial("192.0.2.129", "10.0.0.1"));
	ck_assert(may_dial("192.0.2.129", "192.0.2.129"));
	ck_assert(may_dial("2001:db8:7::9", "10.0.0.1"));
	ck_assert(!may_dial("127.1.2.3", "192.0.2.9"));
	gw.cfg.mpa_peers = &any;
	gw.cfg.mpa_peers_cnt = 1;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(may_dial("203.0.113.1", "10.0.0.1") && may_dial("2001:db9::", "10.0.0.1"));
	gw.cfg.device_cnt = gw.cfg.mpa_peers_cnt = 0;
}

START_TEST(a_device_whose_address_is_missing_is_waited_for)
{
	struct config_device devs[2] = {
		{ .name = "siw0", .addr = gw.server_addrs[0] },
		{ .name = "late" },
	};

	devices_are(devs, 2);
	gw_start();
	ck_assert_ptr_nonnull(strstr(gw.err, "warning: device late at ? is not there: address: "));
	ck_assert_ptr_null(devices_get(worker_devices(gw.w), 1));
	/* said once */
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert_str_eq(gw.err, "");
	fake.late_device = true;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert_str_eq(rnic_query(devices_get(worker_devices(gw.w), 1)).name, "late");
	ck_assert_int_eq(rnic_query(devices_get(worker_devices(gw.w), 1)).port, RNIC_PORT_UP);
	gw.cfg.device_cnt = 0;
}

START_TEST(an_interface_without_addresses_is_reported_and_waited_for)
{
	struct config_device dev = { .interface = "no-such-if" };

	devices_are(&dev, 1);
	gw_start();
	ck_assert_str_eq(gw.err, "warning: no address for a device on interface \"no-such-if\" now\n");
	ck_assert_ptr_null(devices_get(worker_devices(gw.w), 0));
	gw.cfg.device_cnt = 0;
}

START_TEST(passed_sockets_are_used_where_they_fit)
{
	struct sockaddr_storage odd;
	struct listen_socket socks[2] = { listen_socket_of_fd(gw_listen(&gw.svc[GW_IN].listen)),
		listen_socket_of_fd(gw_listen(&odd)) };
	const int fd = socks[0].fd;

	ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
	log_init(LOG_LVL_ERROR);
	ck_assert_msg(gw_try_start(socks, 2) == 0, "%s", gw.err);
	ck_assert_int_eq(loop_add_turn(gw.loop, gw_turn, NULL), 0);
	gw_connect();
	ck_assert(socks[0].fd < 0 && socks[1].fd < 0);
	ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert(refuses(&odd));
}

/* ListenDatagram= in the socket unit: accepting from it would fail for ever. */
START_TEST(a_passed_socket_that_does_not_listen_is_not_used)
{
	const struct sockaddr_storage *addr = &gw.svc[GW_IN].listen;
	struct listen_socket sock = listen_socket_of_fd(socket(AF_INET, SOCK_DGRAM, 0));

	ck_assert_int_eq(bind(sock.fd, (const struct sockaddr *)addr, sizeof(struct sockaddr_in)), 0);
	ck_assert_msg(gw_try_start(&sock, 1) == 0, "%s", gw.err);
	ck_assert_int_eq(loop_add_turn(gw.loop, gw_turn, NULL), 0);
	gw_connect();
}

/* -- reload -- */

START_TEST(a_reload_without_changes_changes_nothing)
{
	gw_begin();
	ck_assert_int_eq(gw_reload(), 0);
	gw_carries_both_ways();
	ck_assert_uint_eq(gw_info(GW_IN).accepted, 1);
	ck_assert_uint_eq(gw_info(GW_IN).connections, 1);
}

/* With the name of this host in it, which no file has. */
START_TEST(the_engine_has_the_settings_of_the_file)
{
	char name[256] = "", want[CLC_HOST_LEN + 1];

	ck_assert_int_eq(gethostname(name, sizeof(name) - 1), 0);
	snprintf(want, sizeof(want), "%-*.*s", CLC_HOST_LEN, CLC_HOST_LEN, name);
	gw_begin();
	ck_assert_uint_eq(fake_seen.cfg.ueid_cnt, 0);
	ck_assert_mem_eq(fake_seen.cfg.host, want, CLC_HOST_LEN);
	gw.cfg.smcr.smc_version = 2;
	gw.cfg.smcr.ueid_cnt = 1;
	memset(gw.cfg.smcr.ueids[0].b, 'X', CLC_EID_LEN);
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert_uint_eq(fake_seen.cfg.smc_version, 2);
	ck_assert_uint_eq(fake_seen.cfg.ueid_cnt, 1);
	ck_assert_mem_eq(fake_seen.cfg.ueids[0].b, gw.cfg.smcr.ueids[0].b, CLC_EID_LEN);
	ck_assert_mem_eq(fake_seen.cfg.host, want, CLC_HOST_LEN);
}

START_TEST(a_changed_service_keeps_its_connections_and_counters)
{
	struct sockaddr_storage old = gw.svc[GW_IN].listen;

	gw_begin();
	gw_free_addr(&gw.svc[GW_IN].listen);
	gw.svc[GW_IN].max_connections = 2;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(refuses(&old));
	gw_carries_both_ways();
	ck_assert_uint_eq(gw_info(GW_IN).connections, 1);
	ck_assert_uint_eq(gw_info(GW_IN).accepted, 1);
	int other = gw_client();
	UNTIL(gw_info(GW_IN).connections == 2);
	close(other);
	other = gw_accept();
	close(other);
	UNTIL(gw_info(GW_IN).connections == 1);
}

START_TEST(a_removed_service_lets_its_connections_live)
{
	gw_begin();
	gw.cfg.services = &gw.svc[GW_OUT];
	gw.cfg.service_cnt = 1;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(refuses(&gw.svc[GW_IN].listen));
	gw_carries_both_ways();
	gw_hang_up(&client);
	gw_expect_eof(server);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	ck_assert(list_empty(&gw_pool(GW_IN)->old_services));
}

START_TEST(a_new_service_listens)
{
	gw.cfg.services = &gw.svc[GW_OUT];
	gw.cfg.service_cnt = 1;
	gw_start();
	ck_assert(refuses(&gw.svc[GW_IN].listen));
	gw.cfg.services = gw.svc;
	gw.cfg.service_cnt = 2;
	ck_assert_int_eq(gw_reload(), 0);
	gw_connect();
}

START_TEST(a_renamed_service_takes_the_socket_over)
{
	gw_begin();
	/* In the backlog while the reload happens: not lost. */
	int waiting = gw_client();
	snprintf(gw.svc[GW_IN].name, sizeof(gw.svc[GW_IN].name), "renamed");
	ck_assert_int_eq(gw_reload(), 0);
	gw_carries_both_ways();
	UNTIL(gw_info(GW_IN).accepted == 1);
	gw_say(waiting, "hello");
	close(server);
	server = gw_accept();
	gw_expect(server, "hello", GW_OPEN);
	close(waiting);
}

/* And back: the addresses cover each other, so the sockets are in each other's way. */
START_TEST(a_service_may_go_from_one_address_to_all)
{
	const struct sockaddr_storage one = gw.svc[GW_IN].listen;
	struct sockaddr_storage all = one;
	int other;

	((struct sockaddr_in *)(void *)&all)->sin_addr.s_addr = htonl(INADDR_ANY);
	gw_begin();
	for (int i = 0; i < 4; i++) {
		gw.svc[GW_IN].listen = i % 2 == 0 ? all : one;
		ck_assert_msg(gw_reload() == 0, "%s", gw.err);
		gw_carries_both_ways();
		other = net_listen(&all, NET_ALONE, false, NULL);
		ck_assert_int_eq(other, -EADDRINUSE);
		close(client);
		close(server);
		/* gw_client() connects to the address of the configuration. */
		gw_connect();
	}
}

/* 203.0.113.0/24 and 2001:db8::/32 are for documents, and nobody's. */
START_LOOP_TEST(a_service_may_listen_where_an_address_comes_later, 0, 2)
{
	struct sockaddr_storage one = gw.svc[GW_IN].listen, later;

	ck_assert_int_eq(addr_parse_port(_i == 0 ? "203.0.113.7:7777" : "[2001:db8::7]:7777", &later), 0);
	gw_start();
	gw.svc[GW_IN].listen = later;
	ck_assert_int_eq(gw_reload(), -EADDRNOTAVAIL);
	gw.svc[GW_IN].freebind = true;
	ck_assert_msg(gw_reload() == 0, "%s", gw.err);
	ck_assert_int_eq(net_listen(&later, NET_ALONE, true, NULL), -EADDRINUSE);
	gw.svc[GW_IN].listen = one;
	ck_assert_msg(gw_reload() == 0, "%s", gw.err);
}

/* The address is somebody else's: as before. */
START_TEST(a_covering_address_of_another_process_is_in_use)
{
	struct sockaddr_storage one = gw.svc[GW_IN].listen, taken_addr;
	int taken = gw_listen(&taken_addr);

	struct sockaddr_storage all = taken_addr;
	((struct sockaddr_in *)(void *)&all)->sin_addr.s_addr = htonl(INADDR_ANY);
	gw_start();
	gw.svc[GW_IN].listen = all;
	ck_assert_int_eq(gw_reload(), -EADDRINUSE);
	gw.svc[GW_IN].listen = one;
	gw_connect();
	close(taken);
}

/* From TCP to a file, to another file, under another name, and back: files come and go, connections stay. */
START_TEST(a_service_may_move_to_a_unix_socket_and_back)
{
	struct sockaddr_storage tcp = gw.svc[GW_IN].listen;

	gw_begin();
	gw_listen_at("one");
	ck_assert_msg(gw_reload() == 0, "%s", gw.err);
	ck_assert(refuses(&tcp));
	gw_carries_both_ways();
	gw_hang_up(&client);
	gw_hang_up(&server);
	gw_connect();
	gw_listen_at("two");
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(!gw_file_is_there("one") && gw_file_is_there("two"));
	/* In the backlog while the socket changes hands. */
	int waiting = gw_client();
	snprintf(gw.svc[GW_IN].name, sizeof(gw.svc[GW_IN].name), "renamed");
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert_str_eq(gw.err, "");
	ck_assert(gw_file_is_there("two"));
	gw_carries_both_ways();
	close(server);
	server = gw_accept();
	gw_say(waiting, "hello");
	gw_expect(server, "hello", GW_OPEN);
	close(waiting);
	gw.svc[GW_IN].listen = tcp;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(!gw_file_is_there("two"));
	gw_hang_up(&client);
	gw_hang_up(&server);
	gw_connect();
}

START_TEST(a_unix_socket_goes_with_its_service)
{
	gw_listen_at("s");
	gw_begin();
	ck_assert(gw_file_is_there("s"));
	gw.cfg.services = &gw.svc[GW_OUT];
	gw.cfg.service_cnt = 1;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(!gw_file_is_there("s"));
	gw.cfg.services = gw.svc;
	gw.cfg.service_cnt = 2;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(gw_file_is_there("s"));
	gw_free_workers();
	ck_assert(!gw_file_is_there("s"));
}

START_TEST(a_reload_that_fails_leaves_no_socket_file)
{
	struct sockaddr_storage old = gw.svc[GW_IN].listen, taken_addr;
	int taken = gw_listen(&taken_addr);

	gw_begin();
	gw_listen_at("s");
	gw.svc[GW_OUT].listen = taken_addr;
	ck_assert_int_eq(gw_reload(), -EADDRINUSE);
	ck_assert(!gw_file_is_there("s"));
	gw.svc[GW_IN].listen = old;
	gw_carries_both_ways();
	close(taken);
}

/* The file stays as it was made, and a reload says so; or none is made, as nobody could be given it any more. */
START_TEST(mode_and_owner_of_a_file_are_a_matter_of_the_start)
{
	gw_listen_at("s");
	gw_begin();
	gw.svc[GW_IN].listen_mode = 0666;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert_ptr_nonnull(strstr(gw.err, "warning: service in: its socket exists already"));
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert_str_eq(gw.err, "");
	gw_listen_at("other");
	gw.svc[GW_IN].listen_owner = (struct config_id){ .name = "x", .id = geteuid() + 1 };
	ck_assert_int_eq(gw_reload(), -EPERM);
	ck_assert_ptr_nonnull(strstr(gw.err, "are set only at a start"));
	ck_assert(gw_file_is_there("s") && !gw_file_is_there("other"));
	gw.svc[GW_IN].listen_owner.id = geteuid();
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(!gw_file_is_there("s") && gw_file_is_there("other"));
}

START_TEST(two_services_may_swap_their_sockets)
{
	struct sockaddr_storage in = gw.svc[GW_IN].listen, out = gw.svc[GW_OUT].listen;

	gw_begin();
	gw.svc[GW_IN].listen = out;
	gw.svc[GW_OUT].listen = in;
	gw.peer_addrs[0] = in;
	ck_assert_int_eq(gw_reload(), 0);
	gw_carries_both_ways();
	close(client);
	close(server);
	gw_connect();
}

START_TEST(a_reload_that_fails_changes_nothing)
{
	struct sockaddr_storage taken_addr, old = gw.svc[GW_IN].listen;
	int taken = gw_listen(&taken_addr);

	gw_begin();
	gw.svc[GW_IN].listen = taken_addr;
	gw.svc[GW_OUT].max_connections = 1;
	ck_assert_int_eq(gw_reload(), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(gw.err, "in"));
	ck_assert_uint_eq(gw_info(GW_OUT).cfg->max_connections, 1000);
	gw_carries_both_ways();
	gw.svc[GW_IN].listen = old;
	close(client);
	close(server);
	gw_connect();
	close(taken);
}

/* -- the end -- */

static unsigned drained;

static void
on_drained(void *arg)
{
	drained += *(unsigned *)arg;
}

START_TEST(a_drain_waits_for_the_last_connection)
{
	unsigned one = 1;

	gw_begin();
	drained = 0;
	worker_drain(gw.w, 10000, on_drained, &one);
	ck_assert(refuses(&gw.svc[GW_IN].listen));
	gw_run_ms(20);
	ck_assert_uint_eq(drained, 0);
	gw_carries_both_ways();
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(drained == 1);
	gw_run_ms(20);
	ck_assert_uint_eq(drained, 1);
	ck_assert_int_lt(gw_reload(), 0);
}

/* The same sockets listen again: rights to make others may be gone. */
START_TEST(a_drain_is_taken_back)
{
	unsigned one = 1;

	gw_begin();
	const int fd = service_find(gw_pool(GW_IN), CONFIG_INGRESS, gw.svc[GW_IN].name)->listener.sock.fd;
	drained = 0;
	worker_drain(gw.w, 50, on_drained, &one);
	ck_assert(refuses(&gw.svc[GW_IN].listen) && refuses(&gw.svc[GW_OUT].listen));
	ck_assert_int_eq(worker_undrain(gw.w), 0);
	ck_assert_int_eq(service_find(gw_pool(GW_IN), CONFIG_INGRESS, gw.svc[GW_IN].name)->listener.sock.fd, fd);
	gw_carries_both_ways();
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	gw_run_ms(100);
	ck_assert_uint_eq(drained, 0);
	gw_connect();
	ck_assert_int_eq(gw_reload(), 0);
	/* And it drains again. */
	gw_hang_up(&client);
	gw_hang_up(&server);
	worker_drain(gw.w, 10000, on_drained, &one);
	UNTIL(drained == 1);
}

/* Another process has taken the port meanwhile: that service is out of order, the others are not. */
START_TEST(a_service_that_cannot_listen_again_is_reported)
{
	unsigned one = 1;

	gw_begin();
	worker_drain(gw.w, 10000, on_drained, &one);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	const struct sockaddr_storage *at = &gw.svc[GW_OUT].listen;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)at, sizeof(struct sockaddr_in)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	log_init(LOG_LVL_ERROR);
	int err = dup(STDERR_FILENO);
	(void)!freopen("/dev/null", "w", stderr);
	ck_assert_int_eq(worker_undrain(gw.w), -EADDRINUSE);
	ck_assert_int_eq(dup2(err, STDERR_FILENO), STDERR_FILENO);
	close(err);
	ck_assert(!refuses(&gw.svc[GW_IN].listen));
	close(fd);
	/* It is well once somebody asks again. */
	ck_assert_int_eq(worker_set_disabled(gw.w, gw.svc[GW_OUT].name, false), 0);
	ck_assert(!refuses(at));
}

/* -- disabled services -- */

START_TEST(a_disabled_service_refuses_and_its_connections_go_on)
{
	const char *name = gw.svc[GW_IN].name;
	struct service_info info;
	struct outage_info outage;

	gw_begin();
	ck_assert_int_eq(worker_set_disabled(gw.w, "none", true), -ENOENT);
	ck_assert_int_eq(worker_set_disabled(gw.w, name, true), 0);
	ck_assert(refuses(&gw.svc[GW_IN].listen));
	ck_assert(!refuses(&gw.svc[GW_OUT].listen));
	ck_assert(worker_service_find(gw.w, name, &info, &outage) && info.disabled);
	gw_carries_both_ways();
	/* Again is nothing, and a reload leaves it so, even where it moves. */
	ck_assert_int_eq(worker_set_disabled(gw.w, name, true), 0);
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(refuses(&gw.svc[GW_IN].listen));
	struct sockaddr_storage old = gw.svc[GW_IN].listen;
	gw_free_addr(&gw.svc[GW_IN].listen);
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert(refuses(&gw.svc[GW_IN].listen) && refuses(&old));
	gw_carries_both_ways();
	ck_assert_int_eq(worker_set_disabled(gw.w, name, false), 0);
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	gw_connect();
	ck_assert(worker_service_find(gw.w, name, &info, &outage) && !info.disabled);
}

/* Who is in the backlog knows itself connected. */
START_TEST(what_waits_in_the_backlog_is_taken)
{
	gw_start();
	client = gw_client();
	ck_assert_int_eq(worker_set_disabled(gw.w, gw.svc[GW_IN].name, true), 0);
	server = gw_accept();
	gw_carries_both_ways();
}

/* The socket of a disabled service goes to another one, which listens. */
START_TEST(a_service_takes_the_socket_of_a_disabled_one)
{
	gw_start();
	ck_assert_int_eq(worker_set_disabled(gw.w, gw.svc[GW_IN].name, true), 0);
	strcpy(gw.svc[GW_IN].name, "heir");
	ck_assert_int_eq(gw_reload(), 0);
	gw_connect();
}

/* One that cannot be shut and opened again, or is not ours alone, takes connections and resets them. */
START_LOOP_TEST(sockets_that_stay_open_turn_clients_away, 0, 2)
{
	struct listen_socket sock = LISTEN_SOCKET_NONE;
	char c;

	if (_i == 0) {
		gw_listen_at("s");
	} else {
		sock = listen_socket_of_fd(gw_listen(&gw.svc[GW_IN].listen));
		sock.elsewhere = true;
	}
	ck_assert_msg(gw_try_start(&sock, 1) == 0, "%s", gw.err);
	ck_assert_int_eq(loop_add_turn(gw.loop, gw_turn, NULL), 0);
	gw_connect();
	ck_assert_int_eq(worker_set_disabled(gw.w, gw.svc[GW_IN].name, true), 0);
	int other = gw_client();
	while (recv(other, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		gw_once();
	ck_assert_uint_eq(gw_info(GW_IN).refused_disabled, 1);
	ck_assert_uint_eq(gw_info(GW_IN).accepted, 1);
	close(other);
	gw_carries_both_ways();
	ck_assert_int_eq(worker_set_disabled(gw.w, gw.svc[GW_IN].name, false), 0);
	other = gw_client();
	UNTIL(gw_info(GW_IN).connections == 2);
	close(other);
}

/* Another process has it, too, and goes on: who comes waits for that one. */
START_TEST(a_drain_leaves_connections_to_the_other_owner_of_a_socket)
{
	struct listen_socket sock = listen_socket_of_fd(gw_listen(&gw.svc[GW_IN].listen));
	const int twin = dup(sock.fd);
	unsigned one = 1;

	sock.elsewhere = true;
	ck_assert_msg(gw_try_start(&sock, 1) == 0, "%s", gw.err);
	ck_assert_int_eq(loop_add_turn(gw.loop, gw_turn, NULL), 0);
	gw_connect();
	worker_drain(gw.w, 10000, on_drained, &one);
	int other = gw_client();
	gw_run_ms(20);
	ck_assert_uint_eq(gw_info(GW_IN).connections, 1);
	int fd = accept4(twin, NULL, NULL, SOCK_NONBLOCK);
	ck_assert_int_ge(fd, 0);
	close(fd);
	close(other);
	close(twin);
}

/* -- connections closed by the operator -- */

static unsigned
close_all(struct close_filter f)
{
	unsigned cnt = 0;
	uint32_t pos = 0;
	bool closed;

	if (f.service == NULL)
		f.service = "";
	while (worker_close_next(gw.w, &pos, &f, &closed))
		cnt += closed;
	return cnt;
}

START_TEST(connections_are_closed_by_what_they_are)
{
	struct close_filter f = { .service = "none" };
	struct session_info info;
	uint32_t pos = 0;

	gw_begin();
	ck_assert_uint_eq(close_all(f), 0);
	ck_assert(worker_session_next(gw.w, &pos, &info));
	ck_assert_uint_eq(close_all((struct close_filter){ .id = info.id + 1000 }), 0);
	f = (struct close_filter){ .peer = gw.svc[GW_OUT].listen };
	addr_set_port(&f.peer, 1);
	ck_assert_uint_eq(close_all(f), 0);
	gw_carries_both_ways();
	/* The ingress's is known by its number; both ends reset their programs. */
	ck_assert_uint_eq(close_all((struct close_filter){ .id = info.id }), 1);
	gw_expect_reset(client);
	gw_expect_reset(server);
	UNTIL(gw_sessions() == 0);
	ck_assert_uint_eq(close_all((struct close_filter){ .id = info.id }), 0);
	struct worker_stats ws;
	worker_stats(gw.w, &ws);
	ck_assert_uint_eq(ws.sessions_closed_operator, 1);
	ck_assert_uint_eq(ws.sessions_reset, 2);
	gw_hang_up(&client);
	gw_hang_up(&server);
	/* By the address of the other daemon, whatever its port. */
	gw_connect();
	f.peer = gw.svc[GW_OUT].listen;
	addr_set_port(&f.peer, 0);
	ck_assert_uint_ge(close_all(f), 1);
	gw_expect_reset(client);
	gw_expect_reset(server);
}

/* A reload has taken the service away; it is known by its name as long as it has connections. */
START_TEST(connections_of_a_removed_service_are_closed)
{
	char name[CONFIG_NAME_MAX];

	gw_begin();
	strcpy(name, gw.svc[GW_IN].name);
	strcpy(gw.svc[GW_IN].name, "another");
	ck_assert_int_eq(gw_reload(), 0);
	gw_carries_both_ways();
	ck_assert_uint_eq(close_all((struct close_filter){ .service = "another" }), 0);
	ck_assert_uint_eq(close_all((struct close_filter){ .service = name }), 1);
	gw_expect_reset(client);
	UNTIL(gw_sessions() == 0);
	ck_assert(list_empty(&gw_pool(GW_IN)->old_services));
}

START_TEST(a_retry_names_the_peer_as_the_engine_knows_it)
{
	struct sockaddr_storage peer;

	gw_start();
	ck_assert_uint_eq(worker_retry(gw.w, NULL).engine.peers, 1);
	ck_assert_str_eq(fake_seen.retried, "*");
	ck_assert_int_eq(addr_parse_port("[2001:db8::1]:81", &peer), 0);
	(void)worker_retry(gw.w, &peer);
	ck_assert_str_eq(fake_seen.retried, "[2001:db8::1]:81");
	ck_assert_int_eq(addr_parse("192.0.2.9", &peer), 0);
	(void)worker_retry(gw.w, &peer);
	ck_assert_str_eq(fake_seen.retried, "192.0.2.9:");
}

/* A device concerns no peer: it is left alone when one is named. */
START_TEST(a_retry_of_all_looks_for_missing_devices)
{
	struct config_device late = { .name = "late" };
	struct sockaddr_storage peer;

	devices_are(&late, 1);
	gw_start();
	ck_assert_uint_eq(worker_retry(gw.w, NULL).devices, 1);
	gw_run_ms(20);
	fake.late_device = true;
	ck_assert_int_eq(addr_parse("192.0.2.9", &peer), 0);
	ck_assert_uint_eq(worker_retry(gw.w, &peer).devices, 0);
	gw_run_ms(20);
	ck_assert_ptr_null(devices_get(worker_devices(gw.w), 0));
	ck_assert_uint_eq(worker_retry(gw.w, NULL).devices, 1);
	UNTIL(devices_get(worker_devices(gw.w), 0) != NULL);
	ck_assert_uint_eq(worker_retry(gw.w, NULL).devices, 0);
	gw.cfg.device_cnt = 0;
}

START_LOOP_TEST(a_drain_does_not_wait_for_ever, 0, 2)
{
	unsigned one = 1;

	fake.busy = _i == 1;
	gw_start();
	if (_i == 0)
		gw_connect();
	drained = 0;
	int64_t from = loop_now(gw.loop);
	worker_drain(gw.w, 50, on_drained, &one);
	UNTIL(drained == 1);
	ck_assert_int_ge(loop_now(gw.loop) - from, 45 * MS);
	gw_run_ms(100);
	ck_assert_uint_eq(drained, 1);
}

/* -- prewarm and check -- */

static struct check_result result;
static unsigned results;

static void
on_result(void *arg, const struct check_result *r)
{
	ck_assert_ptr_eq(arg, &result);
	result = *r;
	results++;
}

static void
check(const struct sockaddr_storage *peer, uint32_t timeout_ms)
{
	results = 0;
	ck_assert_int_eq(worker_check(gw.w, peer, timeout_ms, 0, on_result, &result), 0);
	ck_assert_uint_eq(results, 0);
	UNTIL(results == 1);
	gw_once();
	ck_assert(list_empty(&gw_pool(GW_IN)->probes) && list_empty(&gw_pool(GW_IN)->dead_probes));
}

START_TEST(a_check_says_yes)
{
	gw_start();
	check(&gw.peer_addrs[0], 5000);
	ck_assert_msg(result.possible, "%s", result.text);
	ck_assert_ptr_nonnull(strstr(result.text, " done: SMC-R version 2.1, EID FAKE.EID, Linux, host fake"));
	/* The server gets a connection that ends without a byte. */
	server = accept4(gw.listener, NULL, NULL, SOCK_NONBLOCK);
	gw_expect_eof(server);
	ck_assert_int_eq(result.steps[CHECK_SERVER].result, CHECK_STEP_OK);
	/* Of the steps the stand-in knows the first two. */
	ck_assert_int_eq(result.steps[CHECK_TCP].result, CHECK_STEP_OK);
	ck_assert_int_eq(result.steps[CHECK_CLC].result, CHECK_STEP_OK);
	ck_assert_int_eq(result.steps[CHECK_CONNECT].result, CHECK_STEP_SKIPPED);
	ck_assert_int_eq(result.steps[CHECK_TEST].result, CHECK_STEP_OK);
	ck_assert_uint_eq(fake_seen.tests, 1);
	ck_assert(fake_seen.insisted);
	/* No client of the service at the other end. */
	UNTIL(gw_sessions() == 0);
	ck_assert_uint_eq(gw_info(GW_OUT).accepted, 0);
}

START_TEST(a_check_waits_for_the_answer_on_the_link)
{
	gw_start();
	fake.test_turns = 3;
	fake.held_off_ns = 7;
	check(&gw.peer_addrs[0], 5000);
	ck_assert_msg(result.possible, "%s", result.text);
	ck_assert_uint_eq(fake.test_turns, 0);
	ck_assert_int_eq(result.held_off_ns, 7);
	fake.no_link = true;
	check(&gw.peer_addrs[0], 5000);
	ck_assert(result.possible);
	ck_assert_int_eq(result.steps[CHECK_TEST].result, CHECK_STEP_SKIPPED);
	fake.no_link = false;
	fake.link_dies = true;
	check(&gw.peer_addrs[0], 5000);
	ck_assert(!result.possible);
	ck_assert_int_eq(result.steps[CHECK_TEST].result, CHECK_STEP_FAILED);
	ck_assert_ptr_nonnull(strstr(result.text, "link was lost"));
	fake.link_dies = false;
	fake.test_turns = 1000000;
	check(&gw.peer_addrs[0], 100);
	ck_assert(!result.possible);
	ck_assert_ptr_nonnull(strstr(result.text, "did not answer TEST LINK within 100 ms"));
	fake.test_turns = 0;
}

/* At once: a server that says something else, and one that closes. */
START_TEST(a_check_knows_a_plain_server)
{
	static const char hello[] = "-ERR unknown command\r\n";
	struct sockaddr_storage at;
	int ls = gw_listen(&at), fd;

	gw_start();
	for (unsigned i = 0; i < 2; i++) {
		results = 0;
		ck_assert_int_eq(worker_check(gw.w, &at, 60000, 0, on_result, &result), 0);
		UNTIL((fd = accept4(ls, NULL, NULL, SOCK_NONBLOCK)) >= 0);
		if (i == 0) {
			ck_assert_int_eq(send(fd, hello, sizeof(hello) - 1, 0), sizeof(hello) - 1);
			UNTIL(results == 1);
		}
		close(fd);
		UNTIL(results == 1);
		ck_assert(!result.possible);
		ck_assert_int_eq(result.finding, i == 0 ? CHECK_PLAIN : CHECK_CLOSED);
		ck_assert_int_eq(result.steps[CHECK_CLC].result, CHECK_STEP_FAILED);
	}
	close(ls);
}

/* An allow list turns away before the connect is looked at. */
START_TEST(a_check_that_is_reset_at_once_was_connected)
{
	struct sockaddr_storage at;
	int ls = gw_listen(&at), fd = -1;

	gw_start();
	results = 0;
	ck_assert_int_eq(worker_check(gw.w, &at, 60000, 0, on_result, &result), 0);
	while (fd < 0) {
		fd = accept4(ls, NULL, NULL, SOCK_NONBLOCK);
		if (fd < 0)
			gw_once();
	}
	net_reset(fd);
	UNTIL(results == 1);
	ck_assert_msg(result.finding == CHECK_CLOSED && strstr(result.text, " reset ") != NULL, "%s", result.text);
	close(ls);
}

START_TEST(a_check_says_no_and_why)
{
	struct sockaddr_storage nobody, hole;

	gw_start();
	gw_free_addr(&nobody);
	check(&nobody, 5000);
	ck_assert(!result.possible);
	ck_assert_ptr_nonnull(strstr(result.text, "Connection refused"));
	gw_black_hole(&hole);
	check(&hole, 50);
	ck_assert(!result.possible);
	ck_assert_ptr_nonnull(strstr(result.text, "50 ms"));
	int silent = gw_listen(&nobody);
	check(&nobody, 50);
	ck_assert(!result.possible);
	ck_assert_ptr_nonnull(strstr(result.text, "rendezvous"));
	close(silent);
	fake.server_declines = 0x03030000;
	check(&gw.peer_addrs[0], 5000);
	ck_assert(!result.possible);
	ck_assert_uint_eq(result.diag.peer, 0x03030000);
	fake.server_declines = 0;
	fake.client_declines = 0x03070000;
	check(&gw.peer_addrs[0], 5000);
	ck_assert(!result.possible);
	ck_assert_uint_eq(result.diag.local, 0x03070000);
	fake.client_declines = 0;
	fake.open_fails = true;
	check(&gw.peer_addrs[0], 5000);
	ck_assert(!result.possible);
}

START_TEST(a_check_is_answered_when_the_worker_ends)
{
	struct sockaddr_storage hole;

	gw_start();
	gw_black_hole(&hole);
	results = 0;
	ck_assert_int_eq(worker_check(gw.w, &hole, 5000, 0, on_result, &result), 0);
	gw_once();
	worker_free(gw.w);
	gw.w = NULL;
	ck_assert_uint_eq(results, 1);
	ck_assert(!result.possible);
}

START_TEST(the_worker_ends_behind_its_devices)
{
	gw_start();
	gw_once();
	fake.device_turns = 10;
	worker_free(gw.w);
	gw.w = NULL;
	ck_assert_uint_eq(fake.device_turns, 0);
}

START_TEST(prewarm_waits_for_the_peer)
{
	gw.svc[GW_IN].prewarm = true;
	gw.cfg.service_cnt = 1;
	gw_start();
	UNTIL(!list_empty(&gw_pool(GW_IN)->probes));
	UNTIL(list_empty(&gw_pool(GW_IN)->probes));
	ck_assert_uint_eq(fake_seen.opens, 0);
	/* Now the peer comes up. */
	gw.cfg.service_cnt = 2;
	ck_assert_int_eq(gw_reload(), 0);
	UNTIL(fake_seen.opens == 2 && gw_sessions() == 0);
	ck_assert_uint_eq(gw_info(GW_OUT).accepted, 0);
	ck_assert_int_lt(accept4(gw.listener, NULL, NULL, 0), 0);
	gw_run_ms(50);
	ck_assert(list_empty(&gw_pool(GW_IN)->probes));
}

static unsigned
lines_of(const char *log, const char *text)
{
	unsigned n = 0;

	for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

static struct prewarm *
prewarm_failed(void)
{
	struct service *svc = CONTAINER_OF(list_first(&gw_pool(GW_IN)->services), struct service, node);

	UNTIL(svc->prewarm.probe == NULL && timer_armed(&svc->prewarm.pause));
	return &svc->prewarm;
}

/* A plain server that a service with peer auto leads to will be one for long: each new reason is told once. */
START_TEST(prewarm_says_once_why_it_fails)
{
	static const char notice[] = "prewarming failed";

	gw.svc[GW_IN].prewarm = true;
	gw.svc[GW_IN].peer = SMCR_PEER_AUTO;
	gw.to[GW_IN].addrs = gw.server_addrs;
	gw.cfg.service_cnt = 1;
	capture_begin(LOG_LVL_NOTICE);
	gw_start();
	for (unsigned i = 0; i < 6; i++) {
		struct prewarm *pw = prewarm_failed();

		ck_assert_uint_eq(lines_of(capture_take(), notice), i == 0 || i == 3 ? 1 : 0);
		if (i == 2)
			close(gw.listener);
		env_arm(gw_pool(GW_IN)->env, &pw->pause, 1);
		UNTIL(pw->probe != NULL);
	}
	gw.listener = -1;
	/* The same again when somebody has changed something. */
	(void)prewarm_failed();
	gw.svc[GW_IN].elem_size *= 2;
	ck_assert_int_eq(gw_reload(), 0);
	(void)prewarm_failed();
	ck_assert_uint_eq(lines_of(capture_take(), notice), 1);
	capture_end();
}

/* The pause before another try ends on the operator's word, if the peer is meant; a disabled service makes none. */
START_TEST(an_operator_ends_the_pause_of_a_prewarm)
{
	struct sockaddr_storage other = gw.peer_addrs[0];
	struct prewarm *pw;

	gw.svc[GW_IN].prewarm = true;
	gw.cfg.service_cnt = 1;
	gw_start();
	pw = prewarm_failed();
	const uint32_t pause_ms = pw->pause_ms;
	addr_set_port(&other, (uint16_t)(addr_port(&other) ^ 1));
	ck_assert_uint_eq(worker_retry(gw.w, &other).prewarms, 0);
	ck_assert_ptr_null(pw->probe);
	ck_assert_uint_eq(worker_retry(gw.w, &gw.peer_addrs[0]).prewarms, 1);
	ck_assert_ptr_nonnull(pw->probe);
	ck_assert_ptr_eq(prewarm_failed(), pw);
	ck_assert_uint_eq(pw->pause_ms, pause_ms); /* it begins anew */
	ck_assert_uint_eq(worker_retry(gw.w, NULL).prewarms, 1);
	ck_assert_int_eq(worker_set_disabled(gw.w, gw.svc[GW_IN].name, true), 0);
	ck_assert(pw->probe == NULL && !timer_armed(&pw->pause));
	ck_assert_int_eq(worker_set_disabled(gw.w, gw.svc[GW_IN].name, false), 0);
	ck_assert_ptr_nonnull(pw->probe);
}

START_LOOP_TEST(the_worker_ends_while_prewarming, 0, 2)
{
	gw.svc[GW_IN].prewarm = true;
	if (_i == 0)
		gw_black_hole(&gw.peer_addrs[0]);
	else
		gw_free_addr(&gw.peer_addrs[0]);
	gw_start();
	gw_run_ms(30);
}
