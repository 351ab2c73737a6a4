#!/bin/sh
# Each assertion of lib/, daemon/ and ctl/ has a row below, with the reason why no input from a peer, a client, a file or an operator
# reaches it; each row has its assertion. Two assertions of a file that read the same have two rows, in the order of the file. An
# assertion stands on one line of its own; one that does not cannot be compared, and fails.
cd "${top_srcdir:-.}" || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# FILE: ASSERTION, and its reason in indented lines.
cat > "$tmp/rows" <<'EOF'
lib/smcr/data/link_tx.c: wc->wr_id - link->wr_tail < link_outstanding(link)
	link_post assigned the wr_id, and a device completes each request once, in order. Soft iWARP walks its own queue; the verbs
	device drops a completion with an invalid position (send_ended).
lib/smcr/rendezvous/rdv_step.c: n > 0
	only our own values are encoded: sizes come from the checked configuration, IPv6 prefixes are cut at CLC_MAX_IPV6. A connection
	sends at most Proposal, Confirm and Decline, or Accept and Decline; these fit in RDV_OUT_MAX.
lib/smcr/rendezvous/rendezvous.c: cap >= r->left_len
	bytes that may be returned as data are read with the limit SMCR_LEFTOVER_MAX: in RDV_LATE_DECLINE, and after the Confirm by
	rdv_decline_len. Callers have a buffer of that size.
lib/smcr/rendezvous/rendezvous.c: len <= smcr_clc_want(conn)
	the session reads at most smcr_clc_want bytes from the middle, in the same call (clc_read in clc_stream.c)
lib/smcr/data/tx.c: len <= conn->tx.sndbuf->size - ring_used(conn)
	the length is what one read put into the space that smcr_tx_space gave, with nothing between the two calls
lib/smcr/data/rx.c: len <= conn->rx.head - conn->rx.tail
	the length is what one write took of the data that smcr_rx_data gave, with nothing between; a peer's cursors only move rx_head up
lib/smcr/state/conn.c: (conn_states[conn->state].next & (1u << next)) != 0
	a peer's flags go through close_table. check_close runs each of its cells, and it names only states that `states` allows from there.
lib/smcr/data/rmb.c: (rmb_states[rmb->state].next & BIT(next)) != 0
	our RMB changes at the end of our exchange, which holds it as flow->rmb: a new one is confirmed, a new or confirmed one deleted
lib/smcr/data/rmb.c: (remote_states[rr->state].next & BIT(next)) != 0
	await_cont ends one CONFIRM RKEY before it begins another, and an RMB that left is in no list that messages are looked up in
lib/smcr/state/lgr.c: (lgr_states[lgr->state].next & (1u << next)) != 0
	first contact ends once (lgr->contact.conn), lgr_delete is called for active groups only, lgr_down ignores a dead one
lib/smcr/state/lgr.c: (link_states[link->state].next & (1u << next)) != 0
	link_lost ignores a link that has ended, and link_retire takes down a lost one only. CONFIRM LINK counts only at the steps
	that begin when its queue pair is connected.
lib/smcr/state/lgr.c: next == LLC_IDLE || (steps[f->step].next & (1u << next)) != 0
	a message is accepted only at the steps in `rules`, and our exchange begins only when its flow is idle; the table lists what follows
lib/smcr/data/rmb.c: elem_cnt >= 1 && elem_cnt <= 255
	window_next_cnt is the only source: bounded by the configured number of elements (1 to 255), at least 1
lib/smcr/data/rmb.c: idx >= 1 && idx <= rmb->elem_cnt
	elem_at: indexes of our elements come from rmb_elem_get_from. A peer names them by alert token only; the index of its element is not used here.
lib/smcr/data/rmb.c: e->state == RMB_ELEM_USED
	a connection has its element from rmb_elem_get_from until conn_detach or rdv_leave, which forget it in the same step
lib/iwarp/depths.c: cfg->rtr != 0 && (cfg->rtr & ~(unsigned)RTR_ANY) == 0
	from the device's configuration, which siw.c checks when it makes the device
lib/iwarp/ddp_session.c: (states[s->state].next & BIT(next)) != 0
	an input is looked up in `rules` and a call in `states` first; check_ddp_session runs every input and call in every state
lib/iwarp/ddp_session.c: ddp_session_may(s, DDP_SESSION_INITIATE)
	once, when the association of an active side is up
lib/iwarp/ddp_session.c: ddp_session_may(s, DDP_SESSION_ACCEPT)
	the Initiate is there, and neither the peer nor we have ended the session since: that takes a parked session away
lib/iwarp/ddp_session.c: ddp_session_may(s, DDP_SESSION_REJECT)
	the same
lib/iwarp/ddp_session.c: ddp_session_may(s, DDP_SESSION_TERMINATE)
	the caller asks first, as it does for its last word only
lib/iwarp/ddp_session.c: ddp_session_may(s, DDP_SESSION_SEGMENT)
	the caller sends while the session is open, and the one RDMAP Terminate when it is broken
lib/iwarp/negotiate.c: n->state == NEG_IDLE
	neg_request: a queue pair negotiates once, as one role; siw_neg_start comes just before
lib/iwarp/negotiate.c: n->state == NEG_IDLE
	neg_request_in: the same
lib/iwarp/negotiate.c: n->state == NEG_REQUESTED
	a Reply is read in state SIW_REQUESTED only, which is left with its outcome
lib/iwarp/negotiate.c: n->state == NEG_CHECKED
	neg_accept: called right after neg_request_in set that state
lib/iwarp/negotiate.c: n->state == NEG_CHECKED
	neg_reject: the same, or called by it
lib/iwarp/stream.c: stream_recv_cnt(s) < s->cfg.rq_depth
	siw_post_recv counts the room first
lib/iwarp/stream.c: !s->dead
	a failed stream breaks its queue pair in the same call, and a broken one stops decoding (rx_ulpdu ends its loop)
lib/iwarp/stream.c: stream_reads_out(s) < s->ord
	may_fence asks first, and one Read is out at most
lib/iwarp/stream.c: stream_must_serve(s)
	siw_stream.c asks in the line before
lib/iwarp/ssn.c: cfg->held_max < SSN_WINDOW
	of depths that the device bounds
lib/iwarp/ssn.c: q->now == SSN_NONE
	the caller's loop ends with ssn_settle, or with the stream
lib/iwarp/ssn.c: q->ahead > 0 && *what != 0
	ssn_next has just reported a message
lib/iwarp/stag.c: buckets > 0 && (buckets & (buckets - 1)) == 0
	a constant of siw.c
lib/iwarp/stag.c: t->cnt == 0
	a device is freed when its regions are (siw.c waits)
lib/iwarp/stag.c: *at != NULL
	a region with an STag is in the bucket of that STag, until this same function sets its STag to 0
lib/iwarp/segq.c: ring_size >= 2 * SEGQ_COPY_MAX
	a constant of the device
lib/iwarp/segq.c: q->head - q->tail <= SEGQ_MSGS
	segq_room is asked before each message
lib/iwarp/segq.c: p->cnt <= TXQ_PIECES_MAX
	rnic_wr_check bounds the pieces of a request; a Read's answer has one
lib/iwarp/segq.c: max >= SEGQ_MESSAGE_MIN
	the longest message of a path, as its user has raised it to that
lib/iwarp/segq.c: q->peeked
	what was taken was given by segq_peek in the same loop
lib/iwarp/txq.c: txq_empty(q)
	the stream is started once, before the first FPDU
lib/iwarp/txq.c: p->cnt <= TXQ_PIECES_MAX
	rnic_wr_check bounds the pieces of a request; a Read's answer has one
lib/iwarp/txq.c: n <= q->bytes
	what sendmsg took of what txq_gather gave
lib/rnic/siw/siw_qp.c: qp->state != SIW_CLOSED
	a closed queue pair is in no list and has no descriptor watched: nothing finds it
lib/rnic/siw/siw_qp.c: to > qp->state
	states only go up, each event is looked at in its own state
lib/rnic/siw/siw_qp.c: qp->cq_head - qp->cq_tail <= qp->cq_mask
	the queue has room for all requests and receives that can be posted, and each ends once
lib/rnic/siw/siw.c: CONTAINER_OF(pd, struct siw_pd, pd)->refs == 0
	link_release destroys queue pair and regions before the domain
lib/rnic/verbs/verbs_qp.c: (phases[qp->phase].next & BIT(to)) != 0
	each event is handled in its own phase: what breaks a queue pair checks whether its end has begun, a thread's result comes once,
	and timers are armed for one phase
lib/rnic/verbs/verbs_qp.c: qp->user == VERBS_USED
	closing drops the events; room is reported in phase RTS alone, and no connection is made for one that was closed
lib/base/slab.c: s->used > 0 && c->used > 0
	an object is put back once, by its one owner
lib/base/idtable.c: max >= 1 && max <= IDTABLE_MAX
	from the checked configuration (max_connections)
lib/base/idtable.c: obj != NULL
	the object was just made
lib/base/idtable.c: idtable_get(t, id) != NULL
	the object's own id, deleted once; ids of peers are only looked up
lib/base/timerq.c: q->reserved >= n && q->len <= q->reserved - n
	a caller that returns places has reserved them and cancelled its timers
lib/base/timerq.c: q->len < q->reserved
	each object reserves a place for each of its timers when it is made
daemon/control/report.c: makers[req->command] != NULL
	commands that act are taken out before (control_command.c); the parser gives no others
daemon/control/outbuf.c: len <= b->len
	what send took of what outbuf_data gave
daemon/device/devices.c: rc == 0
	the engine takes as many devices as the list has places, and has no others
daemon/state/settings.c: svc->refs > 0
	counted by its one owner and each settings snapshot
daemon/state/settings.c: s->refs > 0
	counted by service and sessions
daemon/target/targets.c: list_empty(&all->list)
	workers_free: settings are put when their workers are freed, main's names keep none, and the last one takes its row out
daemon/target/targets.c: t->refs > 0
	settings_put gives back, once, what settings_new took, and update_targets in names.c what it took itself
daemon/leg/circle.c: all->at[i] == NULL
	session_end takes a session's leg out of the table, and the workers have ended all of them
daemon/account/admission.c: list_empty(&all->list)
	workers_free: services are put when their workers are freed, and the last one takes its row out
daemon/account/admission.c: a->refs > 0
	service_put alone gives back what service_new took
daemon/account/admission.c: a->connections == 0
	a session holds its settings, they the service, and that the admission, until it has given its place back
daemon/account/admission.c: a->connections > 0
	each session gives back what listener.c's admit took for it, once: session_end, or session_start when it fails
daemon/account/source_count.c: at != NULL
	only a connection that was counted in is counted out, once, by its session's end
daemon/control/field.c: f.type != FIELD_END
	names of members are constants of metric_table.c; check_exposition looks up each of them
daemon/control/json_writer.c: key == NULL
	shapes are fixed in the code of the reports; data never decides on keys or depth
daemon/control/json_writer.c: (key != NULL) == (w->level[w->depth - 1].kind == '{')
	the same
daemon/control/json_writer.c: w->depth < JSON_WRITER_DEPTH
	the same
daemon/control/json_writer.c: w->depth > 0 && w->level[w->depth - 1].kind == kind
	the same
daemon/control/json_writer.c: w->depth == 0
	the same
daemon/state/bufpool.c: p->lent == 0
	session_pool_stop frees the sessions, which give their buffers back, before the pool ends
daemon/state/bufpool.c: p->lent > 0
	a buffer is put back once, by the session that has it
daemon/state/session_table.c: state < SES_STATE_CNT && event < SEV_EVENT_CNT
	enumerators of ours
ctl/show_lists.c: t.cnt < COLUMNS_MAX
	columns are fixed in the code; what the daemon answers fills cells only
daemon/account/far_end.c: all->cnt == 0
	the limits of a service end with the last worker's service, after its sessions, and a far end without connections is dropped there
daemon/account/far_end.c: f->refs > 0
	a connection takes its far end once, with its way, and way_free gives it back
EOF

one='^([^:]*):[0-9]+:[[:space:]]*assert\((.*)\);([[:space:]]*/[*/].*)?$'
grep -rnE '(^|[^_a-zA-Z0-9])assert[[:space:]]*\(' lib daemon ctl --include='*.[ch]' > "$tmp/all"
sed -nE "s,$one,\\1: \\2,p" "$tmp/all" | sort > "$tmp/found"
grep -v '^	' "$tmp/rows" | sort > "$tmp/listed"
bare=$(awk '/^\t/ { if (NF) reason = 1; next } row != "" && !reason { print row } { row = $0; reason = 0 }
	END { if (!reason) print row }' "$tmp/rows")
# result NUMBER NAME WHAT LINES: fails with the lines, if there are any
result() {
	if [ -z "$4" ]; then echo "ok $1 - $2"; else
		echo "not ok $1 - $2"; echo "$4" | sed "s/^/# $3: /"; fi
}
echo 1..5
[ -s "$tmp/found" ] && echo "ok 1 - there are assertions" || echo "not ok 1 - there are assertions"
result 2 "each assertion can be read" "not on a line of its own" "$(grep -vE "$one" "$tmp/all")"
result 3 "each assertion has a row" "no row for" "$(comm -23 "$tmp/found" "$tmp/listed")"
result 4 "each row has its assertion" "no assertion for" "$(comm -13 "$tmp/found" "$tmp/listed")"
result 5 "each row has a reason" "no reason for" "$bare"
