/* A link with delay between two network namespaces, which the kernel offers as netem where it was built with that: a TUN
 * interface in each; each packet that is read from one is written to the other DELAY later. All protocols see the same path.
 *
 * Packets pass whole, as large as the kernel's segmentation offload makes them (up to 64 KiB, with their virtio header), because
 * a system call for every 1500 bytes would make this program the limit. What is under way is bounded by QUEUE_LEN a direction;
 * beyond it packets stay in the interface's own queue, and the kernel drops what that does not hold.
 *
 *	delay_link NETNS NAME MICROSECONDS
 *
 * makes interface NAME in this namespace and in that one (a path, as /proc/PID/ns/net), says "ready", and runs until it is
 * ended; SIGTERM has it print what passed. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_LEN (64u << 20)
#define PACKET_MAX (65536u + 64) /* with its virtio header */
#define BURST 64                 /* packets a turn and direction */
#define NS 1000000000ull

struct packet {
	uint64_t due_ns;
	uint32_t len;
	char data[];
};

#define RECORD_MAX (sizeof(struct packet) + PACKET_MAX + sizeof(uint64_t))

/* One direction. Records lie one behind the other in buf; where less than RECORD_MAX is left at its end, the next one is at 0. */
struct lane {
	int from, to;
	char *buf;
	size_t first, end; /* of the records; equal with cnt > 0: full */
	size_t cnt;
	size_t used, most; /* bytes under way: now, and at most so far */
	uint64_t passed, passed_len, refused;
};

static volatile sig_atomic_t ended;

static void
on_signal(int signo)
{
	(void)signo;
	ended = 1;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec;
}

static size_t
record_len(uint32_t packet_len)
{
	return (sizeof(struct packet) + packet_len + sizeof(uint64_t) - 1) & ~(sizeof(uint64_t) - 1);
}

static size_t
place(size_t at)
{
	return QUEUE_LEN - at < RECORD_MAX ? 0 : at;
}

/* Is there room for a record of any length? */
static bool
lane_has_room(const struct lane *l)
{
	size_t at = place(l->end);
	return l->cnt == 0 || at > l->first || l->first - at > RECORD_MAX;
}

static void
lane_read(struct lane *l, uint64_t due_ns)
{
	for (int i = 0; i < BURST && lane_has_room(l); i++) {
		size_t at = l->cnt == 0 ? 0 : place(l->end);
		struct packet *p = (struct packet *)(void *)(l->buf + at);
		ssize_t n = read(l->from, p->data, PACKET_MAX);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			err(1, "read a packet");
		if (l->cnt == 0)
			l->first = 0;
		p->due_ns = due_ns;
		p->len = (uint32_t)n;
		l->end = at + record_len(p->len);
		l->cnt++;
		l->used += p->len;
		l->most = l->used > l->most ? l->used : l->most;
	}
}

/* The next one to leave; NULL if none is under way. */
static const struct packet *
lane_next(struct lane *l)
{
	return l->cnt > 0 ? (const struct packet *)(const void *)(l->buf + l->first) : NULL;
}

static void
lane_write(struct lane *l, uint64_t now)
{
	const struct packet *p = lane_next(l);
	for (int i = 0; i < BURST && p != NULL && p->due_ns <= now; i++, p = lane_next(l)) {
		/* What the other side does not take (its interface is down, say) is lost, as on any link. */
		if (write(l->to, p->data, p->len) == (ssize_t)p->len)
			l->passed++, l->passed_len += p->len;
		else
			l->refused++;
		l->used -= p->len;
		l->cnt--;
		l->first = place(l->first + record_len(p->len));
	}
}

static int
open_tun(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR };
	strncpy(ifr.ifr_name, name, sizeof(ifr.ifr_name) - 1);
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) != 0 ||
	    ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0)
		err(1, "TUN interface %s", name);
	return fd;
}

static void
run(struct lane lanes[2], uint64_t delay_ns)
{
	while (!ended) {
		uint64_t wake = UINT64_MAX, now = now_ns();
		struct pollfd fds[2];
		for (int i = 0; i < 2; i++) {
			const struct packet *p = lane_next(&lanes[i]);
			if (p != NULL && p->due_ns < wake)
				wake = p->due_ns;
			fds[i] = (struct pollfd){ .fd = lane_has_room(&lanes[i]) ? lanes[i].from : -1,
				.events = POLLIN };
		}
		uint64_t wait = wake > now ? wake - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(wait / NS), .tv_nsec = (long)(wait % NS) };
		if (ppoll(fds, 2, wake == UINT64_MAX ? NULL : &ts, NULL) < 0 && errno != EINTR)
			err(1, "ppoll");
		now = now_ns();
		for (int i = 0; i < 2; i++) {
			lane_read(&lanes[i], now + delay_ns);
			lane_write(&lanes[i], now_ns());
		}
	}
}

int
main(int argc, char **argv)
{
	char *end = NULL;
	unsigned long delay_us = argc == 4 ? strtoul(argv[3], &end, 10) : 0;
	if (end == NULL || end == argv[3] || *end != '\0' || delay_us > 10000000)
		errx(1, "usage: delay_link NETNS NAME MICROSECONDS");
	int here = open_tun(argv[2]);
	int ns = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) != 0)
		err(1, "%s", argv[1]);
	int there = open_tun(argv[2]);
	struct lane lanes[2] = { { .from = here, .to = there }, { .from = there, .to = here } };
	for (int i = 0; i < 2; i++)
		if ((lanes[i].buf = malloc(QUEUE_LEN)) == NULL)
			err(1, "queue");
	(void)signal(SIGTERM, on_signal);
	(void)prctl(PR_SET_TIMERSLACK, 1ul);
	printf("ready\n");
	(void)fflush(stdout);
	run(lanes, delay_us * 1000);
	for (int i = 0; i < 2; i++)
		printf("%s: %llu packets, %llu bytes, %llu refused; %zu bytes under way at most\n",
		    i == 0 ? "there" : "back", (unsigned long long)lanes[i].passed,
		    (unsigned long long)lanes[i].passed_len, (unsigned long long)lanes[i].refused, lanes[i].most);
	return 0;
}
