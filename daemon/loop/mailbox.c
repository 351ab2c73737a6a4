/* Functions posted to the loop of another thread; see loop/mailbox.h. */
#include "daemon/loop/mailbox.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"

static void
mailbox_on_mail(struct loop_io *io, unsigned events)
{
	(void)events;
	mailbox_run(CONTAINER_OF(io, struct mailbox, io));
}

int
mailbox_init(struct mailbox *box, struct loop *loop)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	*box = (struct mailbox){ .loop = loop, .io = { .fd = fd, .cb = mailbox_on_mail } };
	box->end = &box->first;
	int rc = loop_add(loop, &box->io);
	if (rc != 0) {
		close(fd);
		*box = (struct mailbox){ 0 };
		return rc;
	}
	(void)pthread_mutex_init(&box->lock, NULL);
	return 0;
}

void
mailbox_fini(struct mailbox *box)
{
	if (box->loop == NULL)
		return;
	loop_del(box->loop, &box->io);
	close(box->io.fd);
	(void)pthread_mutex_destroy(&box->lock);
	*box = (struct mailbox){ 0 };
}

void
mailbox_post(struct mailbox *box, struct mail *mail)
{
	const uint64_t one = 1;

	mail->next = NULL;
	(void)pthread_mutex_lock(&box->lock);
	bool wake = box->first == NULL;
	*box->end = mail;
	box->end = &mail->next;
	/* Under the lock: after it the reader may have ended. An unread eventfd overflows after 2^64 of these. */
	if (wake)
		(void)!write(box->io.fd, &one, sizeof(one));
	(void)pthread_mutex_unlock(&box->lock);
}

void
mailbox_run(struct mailbox *box)
{
	struct mail *mail;
	uint64_t cnt;

	(void)!read(box->io.fd, &cnt, sizeof(cnt));
	(void)pthread_mutex_lock(&box->lock);
	mail = box->first;
	box->first = NULL;
	box->end = &box->first;
	(void)pthread_mutex_unlock(&box->lock);
	while (mail != NULL) {
		struct mail *next = mail->next;

		mail->fn(mail);
		mail = next;
	}
}

void
mailbox_wait(struct mailbox *box)
{
	struct pollfd p = { .fd = box->io.fd, .events = POLLIN };

	if (poll(&p, 1, -1) > 0)
		mailbox_run(box);
}
