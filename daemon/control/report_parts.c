/* The frame around every answer, and what several of them have in common, the walk over workers among it; see report.h. */
#include "daemon/control/report.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/addr.h"
#include "wire/clc.h"

static void
begin_frame(struct json_writer *jw, struct outbuf *out, const char *command, int64_t wall_ms)
{
	jw_init(jw, out);
	jw_object(jw, NULL);
	jw_int(jw, "schema", REPORT_SCHEMA);
	jw_string(jw, "command", command);
	jw_int(jw, "time_ms", wall_ms);
}

void
report_begin(struct json_writer *jw, struct outbuf *out, enum control_command c, int64_t wall_ms)
{
	begin_frame(jw, out, control_commands[c].name, wall_ms);
	jw_null(jw, "error");
	jw_object(jw, "data");
}

void
report_end(struct json_writer *jw)
{
	jw_object_end(jw);
	jw_object_end(jw);
	jw_end(jw);
}

void
report_error(struct outbuf *out, const char *command, int64_t wall_ms, const char *code, const char *text)
{
	struct json_writer jw;

	begin_frame(&jw, out, command, wall_ms);
	jw_object(&jw, "error");
	jw_string(&jw, "code", code);
	jw_string(&jw, "text", text);
	jw_object_end(&jw);
	jw_null(&jw, "data");
	jw_object_end(&jw);
	jw_end(&jw);
}

void
report_reason(struct json_writer *jw, const char *key, const struct smcr_diag *d)
{
	struct sockaddr_storage mpa_peer = { 0 };

	jw_object(jw, key);
	report_hex32(jw, "local_code", d->local);
	jw_string(jw, "local_text", d->local != 0 ? clc_diag_str(d->local) : "");
	report_hex32(jw, "peer_code", d->peer);
	jw_string(jw, "peer_text", d->peer != 0 ? clc_diag_str(d->peer) : "");
	jw_string(jw, "detail", d->local != 0 && d->detail != NULL ? d->detail : "");
	if (d->local != 0 && d->mpa_port != 0)
		addr_from_v6(d->rnic.b, d->mpa_port, &mpa_peer);
	report_sockaddr(jw, "mpa_peer", &mpa_peer);
	jw_string(jw, "transport", d->over != NULL ? d->over : "");
	jw_array(jw, "offered");
	for (unsigned bit = 1; bit < CLC_TRANSPORT_PREWARM; bit <<= 1)
		if ((d->offered & bit) != 0 && clc_transport_str(bit) != NULL)
			jw_string(jw, NULL, clc_transport_str(bit));
	jw_array_end(jw);
	jw_bool(jw, "sctp_held_off", d->sctp_held_off);
	jw_bool(jw, "out_of_sync", d->out_of_sync);
	jw_bool(jw, "held_off", d->held_off);
	jw_object_end(jw);
}

void
report_peer(struct json_writer *jw, const struct smcr_peer_info *p)
{
	jw_uint(jw, "version", p->version);
	jw_uint(jw, "release", p->release);
	jw_bool(jw, "foreign", p->foreign);
	jw_string(jw, "eid", p->eid);
	jw_string(jw, "peer_os", p->os != 0 ? clc_os_str(p->os) : "");
	jw_string(jw, "peer_host", p->host);
}

void
report_sockaddr(struct json_writer *jw, const char *key, const struct sockaddr_storage *ss)
{
	char text[ADDR_STR_MAX];

	jw_string(jw, key, ss->ss_family != AF_UNSPEC ? addr_format_port(ss, text, sizeof(text)) : "");
}

void
report_gid(struct json_writer *jw, const char *key, const struct rnic_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->b, text, sizeof(text));
	jw_string(jw, key, text);
}

void
report_mac(struct json_writer *jw, const char *key, const uint8_t mac[6])
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	jw_string(jw, key, text);
}

void
report_hex32(struct json_writer *jw, const char *key, uint32_t v)
{
	char text[11];

	snprintf(text, sizeof(text), "0x%08" PRIx32, v);
	jw_string(jw, key, text);
}

void
report_ms(struct json_writer *jw, const char *key, int64_t ns)
{
	jw_int(jw, key, ns / 1000000);
}

void
report_conn_counts(struct json_writer *jw, const char *key, const uint64_t conns[3])
{
	jw_object(jw, key);
	jw_uint(jw, "smcr", conns[SESSION_SMCR]);
	jw_uint(jw, "tcp", conns[SESSION_TCP]);
	jw_uint(jw, "setup", conns[SESSION_SETUP]);
	jw_object_end(jw);
}

bool
report_next_worker(struct report *r)
{
	if (r->nr == r->last)
		return false;
	r->nr++;
	r->pos = 0;
	return true;
}
