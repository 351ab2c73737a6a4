/* Connections that open over a link (doc/open.md): elements that the server grants to the client, and the services
 * that the client may reach with them. Both belong to the group. */
#pragma once

#include "smcr/state/link.h"
#include "wire/open.h"

struct grant;
struct lgr;
struct remote_rmb;
struct rmb;
struct smcr_conn;
struct ticket;

/* Both ends open connections over links, by the settings in force. */
bool grant_is_on(const struct lgr *);

/* -- server -- */

/* Grants elements of this size, if few are left: each is a connection in CONN_SPARE. */
void grant_fill(struct lgr *, uint32_t elem_size);
/* The connection granted as this token, no longer a spare one (CONN_RENDEZVOUS); NULL: none. left: elements that the
 * client has left. */
struct smcr_conn *grant_take_spare(struct lgr *, uint32_t token, unsigned left);
/* The client may lack some elements, as a GRANT was lost with a link, or DELETE RKEY had no outcome, or they are small by
 * now: others replace them. They stay valid. Bounded. */
void grant_in_doubt(struct lgr *);
/* The peer has deleted the RMB, and with it what was granted of it. */
void grant_end_rmb(struct rmb *);
/* The group ends: so do its spare connections. */
void grant_end(struct lgr *);

/* -- client -- */

/* The peer granted these elements. Those of an unknown RMB are ignored: its deletion over another link overtook them. */
void grant_add(struct link *, const struct open_msg *);
/* Takes an element whose RMB is known on this link; NULL: none is left. */
struct remote_rmb *grant_take(struct lgr *, const struct link *, struct grant *);

/* -- both -- */

/* The client reached the service, or its destination there, by a rendezvous. key: of smcr_open; "" at a server. */
void ticket_put(struct lgr *, uint32_t nr, const char *key, const struct smcr_open *, bool uses_client);
/* Client: the ticket for this key, scope and destination, or NULL when connections may not open over a link now. */
const struct ticket *ticket_for(const struct lgr *, const struct smcr_open *);
/* Server: the client reached this service within the last minutes. */
bool ticket_is_valid(const struct lgr *, uint32_t nr);
/* Server: of the rendezvous that gave it last. */
struct smcr_scope ticket_scope(const struct lgr *, uint32_t nr);
/* Client: the peer refused a connection. The ticket ends, and others use a rendezvous for a while. */
void ticket_refused(struct lgr *, uint32_t nr);
