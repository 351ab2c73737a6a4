/* Choice of the device for a connection's first contact, and its reachable peers. */
#include <string.h>

#include "smcr/group/topology.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

uint8_t
rdv_transport_bit(enum rnic_transport transport)
{
	static const uint8_t bits[] = {
		[RNIC_TRANSPORT_ROCE] = CLC_TRANSPORT_ROCE,
		[RNIC_TRANSPORT_IWARP] = CLC_TRANSPORT_IWARP,
		[RNIC_TRANSPORT_IWARP_SCTP] = CLC_TRANSPORT_IWARP_SCTP,
		[RNIC_TRANSPORT_IWARP_SCTP_UDP] = CLC_TRANSPORT_IWARP_SCTP_UDP,
	};

	return bits[transport];
}

static unsigned
kinds_of(const struct rnic_info *info)
{
	if (info->transport != RNIC_TRANSPORT_ROCE)
		return rdv_transport_bit(info->transport);
	if (info->gid_type == RNIC_GID_ROCE_V1)
		return RDV_ROCE | RDV_ROCE_V1;
	return info->gid_type == RNIC_GID_ROCE_V2 && topology_is_ipv4(info->gid.b) ? RDV_ROCE | RDV_ROCE_V2 : RDV_ROCE;
}

uint8_t
rdv_transports(const struct smcr *eng)
{
	unsigned kinds = 0;

	for (unsigned i = 0; i < eng->dev_cnt; i++) {
		struct rnic_info info = rnic_query(eng->devs[i]);

		if (info.port == RNIC_PORT_UP)
			kinds |= kinds_of(&info);
	}
	return kinds & RDV_SMCRD;
}

/* With only_tls: RoCE if a card is protected otherwise. Others have it, too: link_setup() makes no link on them. */
static unsigned
protected_kinds(const struct smcr *eng)
{
	for (unsigned i = 0; i < eng->dev_cnt; i++) {
		struct rnic_info info = rnic_query(eng->devs[i]);

		if (info.transport == RNIC_TRANSPORT_ROCE && info.protection != RNIC_PROTECTED_NONE)
			return CLC_TRANSPORT_ROCE;
	}
	return 0;
}

uint8_t
rdv_transports_sent(const struct smcr_conn *conn, unsigned kinds)
{
	const struct smcr_open *o = &conn->rdv->open;

	if (!o->in_tls)
		return (uint8_t)kinds;
	if (o->only_tls)
		kinds &= CLC_TRANSPORT_IWARP | protected_kinds(conn->eng);
	return (uint8_t)((kinds & ~(unsigned)CLC_TRANSPORT_IWARP) |
	    ((kinds & CLC_TRANSPORT_IWARP) != 0 ? CLC_TRANSPORT_IWARP_TLS : 0));
}

unsigned
rdv_transports_received(const struct smcr_conn *conn, unsigned transports)
{
	const struct smcr_open *o = &conn->rdv->open;
	unsigned tcp = o->in_tls ? CLC_TRANSPORT_IWARP_TLS : CLC_TRANSPORT_IWARP;
	unsigned kinds = transports & ~(unsigned)(CLC_TRANSPORT_IWARP | CLC_TRANSPORT_IWARP_TLS);

	if (o->in_tls && o->only_tls)
		kinds &= protected_kinds(conn->eng);
	return kinds | ((transports & tcp) != 0 ? CLC_TRANSPORT_IWARP : 0);
}

unsigned
rdv_transports_foreign(const struct smcr_conn *conn, unsigned kinds)
{
	const struct smcr_open *o = &conn->rdv->open;

	return o->in_tls && o->only_tls ? 0 : kinds;
}

/* The RoCE device with this GID; a port may be several devices, one per kind of GID. */
static bool
roce_at(const struct smcr *eng, const struct rnic_gid *gid, struct rnic_info *info)
{
	for (unsigned i = 0; gid != NULL && i < eng->dev_cnt; i++) {
		*info = rnic_query(eng->devs[i]);
		if (info->transport == RNIC_TRANSPORT_ROCE && memcmp(&info->gid, gid, sizeof(*gid)) == 0)
			return true;
	}
	return false;
}

struct rnic_dev *
rdv_pick_device(const struct smcr *eng, unsigned kinds, const struct rnic_gid *want, const uint8_t *to)
{
	struct rnic_dev *best = NULL;
	struct rnic_info port;
	unsigned best_score = 0;
	bool has_port = roce_at(eng, want, &port);

	for (unsigned i = 0; i < eng->dev_cnt; i++) {
		struct rnic_info info = rnic_query(eng->devs[i]);
		unsigned score = 1;

		if (info.port != RNIC_PORT_UP || (kinds & kinds_of(&info)) == 0 ||
		    (to != NULL && topology_reach(eng->devs[i], to) == RNIC_REACH_NONE))
			continue;
		/* Devices are in order of arrival. */
		if (info.transport == RNIC_TRANSPORT_ROCE)
			score += info.gid_type == RNIC_GID_ROCE_V1 ? 1 : 2;
		if (want != NULL && memcmp(&info.gid, want, sizeof(*want)) == 0)
			score += 6;
		else if (has_port && info.transport == RNIC_TRANSPORT_ROCE &&
		    memcmp(info.mac, port.mac, sizeof(info.mac)) == 0)
			score += 3;
		if (score <= best_score)
			continue;
		best = eng->devs[i];
		best_score = score;
	}
	return best;
}

/* Kinds of devices of a group's links. */
static unsigned
kinds_of_group(const struct lgr *lgr)
{
	const struct link *l = LGR_FIND_LINK(link, lgr, link->state != LINK_FREE);

	if (l == NULL)
		return 0;
	return kinds_of(&l->info) &
	    (lgr->dialect.foreign && l->info.transport == RNIC_TRANSPORT_ROCE ? ~(unsigned)RDV_ROCE : RDV_SMCRD);
}

bool
rdv_vlan_fits(const struct smcr_conn *conn, const struct lgr *lgr)
{
	struct rnic_dev *dev = rdv_pick_device(conn->eng, kinds_of_group(lgr), &conn->rdv->open.local_addr, NULL);

	return dev == NULL || rnic_query(dev).vlan == lgr->vlan;
}

uint8_t
rdv_own_gids(const struct smcr *eng, const struct link *link, uint8_t gids[CLC_MAX_GIDS][CLC_GID_LEN])
{
	uint8_t cnt = 0;

	memcpy(gids[cnt++], link->info.gid.b, CLC_GID_LEN);
	for (unsigned i = 0; i < eng->dev_cnt && cnt < CLC_MAX_GIDS; i++) {
		struct rnic_info info = rnic_query(eng->devs[i]);

		if (eng->devs[i] != link->dev && info.port == RNIC_PORT_UP && info.vlan == link->lgr->vlan &&
		    (kinds_of(&info) & RDV_ROCE_V2) != 0)
			memcpy(gids[cnt++], info.gid.b, CLC_GID_LEN);
	}
	return cnt;
}
