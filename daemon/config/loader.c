/* Loads a configuration in a thread; see loader.h. Called by process/reload_job.c. */
#include "daemon/config/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct loading {
	loader_done done;
	void *arg;
	char path[CONFIG_HOST_MAX];
	const char *instance;
	int rc;
	struct config *cfg;
	char *msgs;
};

static void
loader_load(void *arg)
{
	struct loading *l = arg;
	size_t len;
	FILE *err = open_memstream(&l->msgs, &len);

	if (err == NULL) {
		l->rc = -ENOMEM;
		return;
	}
	l->rc = config_load(l->path, l->instance, err, &l->cfg);
	if (fclose(err) != 0 && l->rc == 0)
		l->rc = -ENOMEM;
}

static void
loader_on_loaded(void *arg)
{
	struct loading *l = arg;

	l->done(l->arg, l->rc, l->rc == 0 ? l->cfg : NULL, l->msgs != NULL ? l->msgs : "out of memory\n");
	if (l->rc == 0)
		l->cfg = NULL;
}

static void
loader_drop(void *arg)
{
	struct loading *l = arg;

	config_free(l->cfg);
	free(l->msgs);
	free(l);
}

int
loader_start(struct loop *loop, const char *path, const char *instance, loader_done done, void *arg, struct job **out)
{
	static const struct job_ops ops = { loader_load, loader_on_loaded, loader_drop };
	struct loading *l;

	if (strlen(path) >= sizeof(l->path))
		return -ENAMETOOLONG;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->done = done;
	l->arg = arg;
	strcpy(l->path, path);
	l->instance = instance;
	int rc = job_start(loop, &ops, l, out);
	if (rc != 0)
		free(l);
	return rc;
}
