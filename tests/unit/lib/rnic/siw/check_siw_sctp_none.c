/* A build without libusrsctp, in any build: this program is one, with siw_sctp_none.c in the place of the stack in user space. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/rng.h"
#include "rnic/siw/siw.h"
#include "tests/poll_loop.h"
#include "open_fds.h"
#include "unit.h"

static struct poll_loop loop;
static struct rng rng;

static void
setup(void)
{
	rng_init_kernel(&rng);
	poll_loop_init(&loop);
}

static void
teardown(void)
{
	poll_loop_fini(&loop);
}

UNIT_FIXTURE(setup, teardown);

static int
try(enum siw_transport transport, enum siw_sctp_stack_kind stack, struct rnic_dev **dev, const char **err)
{
	const struct rnic_loop l = poll_loop_rnic(&loop);
	struct siw_config c;

	siw_config_init(&c);
	ck_assert_int_eq(addr_parse("127.0.0.1", &c.addr), 0);
	c.transport = transport;
	c.sctp_stack = stack;
	*dev = NULL;
	*err = "";
	return siw_open(&c, &l, &rng, dev, err);
}

static bool
kernel_has_sctp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

START_LOOP_TEST(sctp_in_user_space_does_not_open_and_says_why, 0, 2)
{
	const unsigned before = open_fds();
	struct rnic_dev *dev;
	const char *err;

	if (_i == 1 && kernel_has_sctp())
		return; /* it is taken then */
	ck_assert_int_eq(try(SIW_SCTP, _i == 0 ? SIW_STACK_USER : SIW_STACK_AUTO, &dev, &err), -ENOTSUP);
	ck_assert_str_eq(err, "SCTP: this smcrd was built without libusrsctp");
	ck_assert_ptr_null(dev);
	ck_assert_uint_eq(open_fds(), before);
}

START_TEST(tcp_is_as_ever)
{
	struct rnic_dev *dev;
	const char *err;

	ck_assert_int_eq(try(SIW_TCP, SIW_STACK_AUTO, &dev, &err), 0);
	ck_assert_int_eq(rnic_query(dev).transport, RNIC_TRANSPORT_IWARP);
	dev->ops->free(dev);
}
