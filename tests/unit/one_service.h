/* An ingress with one far end, without any connection, for tests of its events, which are captured. */
#pragma once

#include <arpa/inet.h>
#include <string.h>

#include "captured.h"
#include "daemon/net/net.h"
#include "daemon/service/service.h"

#define S INT64_C(1000000000)

static struct env env;
static struct session_pool pool;
static struct settings settings;
static struct service svc;
static struct event_history news;
static union net_addr far;
static struct config_target to;

static inline void
set_far(const char *addr)
{
	far.in4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(16379) };
	ck_assert_int_eq(inet_pton(AF_INET, addr, &far.in4.sin_addr), 1);
}

static inline void
one_service_begin(void)
{
	memset(&pool, 0, sizeof(pool));
	memset(&svc, 0, sizeof(svc));
	memset(&settings, 0, sizeof(settings));
	env.now_ns = 1000 * S;
	pool.env = &env;
	list_init(&pool.services);
	ck_assert_int_eq(event_history_init(&news), 0);
	pool.place.news = &news;
	settings.cfg.kind = CONFIG_INGRESS;
	strcpy(settings.cfg.name, "redis");
	strcpy(to.host, "192.0.2.2");
	settings.cfg.to = &to;
	settings.cfg.to_cnt = 1;
	svc.pool = &pool;
	svc.settings = &settings;
	set_far("192.0.2.2");
	capture_begin(LOG_LVL_NOTICE);
}

static inline void
one_service_end(void)
{
	capture_end();
	event_history_fini(&news);
}
