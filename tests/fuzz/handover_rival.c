/* See handover_rival.h. */
#include "handover_rival.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/handover_msg.h"
#include "fuzz.h"

#define DEV_OFF 32
#define INO_OFF 40
#define MANY 240 /* operands from here on bring descriptors where there should be none */

/* How many times a descriptor comes, by the upper half of the operand. */
static const unsigned counts[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 2, 3, 5, 6, 253 };

/* A text by its number: paths of existing and missing files, and invalid ones. */
static const char *
text_of(unsigned nr)
{
	static const char *const words[] = { "", "nothing", "/run/systemd/notify", "@abstract", "\033[2J", "a\nb",
		"/" };
	static char longest[HANDOVER_TEXT_MAX];
	const unsigned cnt = sizeof(words) / sizeof(words[0]);

	nr %= cnt + DESC_CNT + 4;
	if (nr < cnt)
		return words[nr];
	nr -= cnt;
	if (nr < DESC_CNT)
		return descriptors_path(nr);
	switch (nr - DESC_CNT) {
	case 0:
		return descriptors_path_of("file");
	case 1:
		return descriptors_path_of("none");
	default:
		memset(
		    longest, 'x', nr - DESC_CNT == 2 ? sizeof(longest) - 1 : 107); /* the latter fits into sun_path */
		longest[nr - DESC_CNT == 2 ? sizeof(longest) - 1 : 107] = '\0';
		return longest;
	}
}

/* How many sockets the program still sends as messages. */
static uint32_t
sockets_behind(const struct handover_rival *r, const struct steps *steps)
{
	uint32_t cnt = 0;

	for (size_t i = 0; i < steps->left; i++)
		cnt += steps->p[i * STEP_LEN] % r->ops == RIVAL_MESSAGE &&
		    steps->p[i * STEP_LEN + 1] % (HANDOVER_DONE + 1) == HANDOVER_SOCKET;
	return cnt;
}

static void
describe_socket(const struct step *st, struct handover_msg *m)
{
	static const unsigned kinds[] = { HANDOVER_CONTROL, HANDOVER_SERVICE, HANDOVER_MPA, HANDOVER_SERVICE,
		HANDOVER_NONE, HANDOVER_MPA + 1 };
	struct stat stat;

	m->kind = (enum handover_kind)kinds[st->a % 6];
	m->cnt = st->a >> 7;
	strcpy(m->text, st->b < 2 ? descriptors_path(st->c % DESC_CNT) : text_of(st->b));
	if (m->text[0] == '\0' || lstat(m->text, &stat) != 0)
		return;
	m->dev = stat.st_dev;
	m->ino = stat.st_ino + (st->b == 1);
}

static void
note_files(struct handover_rival *r, const uint8_t *bytes)
{
	const char *text = (const char *)bytes + HANDOVER_LEN - HANDOVER_TEXT_MAX;

	for (unsigned i = 0; i < DESC_CNT; i++) {
		const struct listen_socket l = descriptors_lsock(i);

		if (l.path[0] == '\0')
			continue;
		r->path_said[i] |= strncmp(text, l.path, HANDOVER_TEXT_MAX) == 0;
		r->identity_said[i] |= be64_get(bytes + DEV_OFF) == l.dev && be64_get(bytes + INO_OFF) == l.ino;
	}
}

/* Takes what was said of the next message. */
static void
send_twisted(struct handover_rival *r, uint8_t *bytes, int fd, unsigned fd_cnt)
{
	size_t from = 0, to = HANDOVER_LEN;

	for (unsigned i = 0; i < r->twist_cnt; i++) {
		const struct step *t = &r->twists[i];
		uint8_t *p = &bytes[t->a % HANDOVER_LEN];

		*p = (uint8_t)(t->b % 3 == 0 ? t->c : t->b % 3 == 1 ? *p ^ t->c : *p + t->c);
	}
	if (r->cuts && r->cut.b % 2 == 0)
		to = r->cut.a % HANDOVER_LEN;
	else if (r->cuts)
		from = r->cut.a % HANDOVER_LEN;
	r->twist_cnt = 0;
	r->cuts = false;
	note_files(r, bytes);
	descriptors_send(r->sock, bytes + from, to - from, fd, fd_cnt);
}

static void
message(struct handover_rival *r, const struct step *st, const struct steps *steps)
{
	struct handover_msg m = { .type = (enum handover_type)(st->who % (HANDOVER_DONE + 1)),
		.cnt = st->a,
		.pid = (uint32_t)getpid(),
		.watchdog_us = st->c };
	unsigned fd_cnt = st->c >= MANY ? counts[st->a % 16] : 0;
	uint8_t bytes[HANDOVER_LEN];

	if (m.type == HANDOVER_SOCKET) {
		describe_socket(st, &m);
		fd_cnt = counts[st->c / DESC_CNT];
	} else {
		strcpy(m.text, text_of(st->b));
	}
	if (m.type == HANDOVER_HELLO)
		m.cnt += sockets_behind(r, steps);
	handover_encode(&m, bytes);
	send_twisted(r, bytes, descriptors_fd(st->c % DESC_CNT), fd_cnt);
}

static void
raw(struct handover_rival *r, const struct step *st, struct steps *steps)
{
	const uint8_t *p;
	size_t n = steps_raw(steps, st->c % 8, &p);

	descriptors_send(r->sock, p, st->a < n ? st->a : n, descriptors_fd(st->b % DESC_CNT),
	    st->b >= MANY ? counts[st->a % 16] : 0);
}

void
handover_rival_step(struct handover_rival *r, const struct step *st, struct steps *steps)
{
	switch (st->op % r->ops) {
	case RIVAL_MESSAGE:
		message(r, st, steps);
		break;
	case RIVAL_RAW:
		raw(r, st, steps);
		break;
	case RIVAL_TWIST:
		if (r->twist_cnt < HANDOVER_TWISTS_MAX)
			r->twists[r->twist_cnt++] = *st;
		break;
	case RIVAL_CUT:
		r->cut = *st;
		r->cuts = true;
		break;
	default:
		break;
	}
}
