/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "sim_cm.h"

/* How long a view may last where the protocol must end it: 15 retransmissions of at most 4.9 s, and as many MRAs of
 * 17.5 s. 0: the application ends it. */
#define LONGEST_REQUEST    (16 * 23 * SECOND)
#define LONGEST_DISCONNECT (40 * SECOND)
#define PENDING            (400 * MS) /* how long a request waits for a listener */

static const struct {
	const char *name;
	uint64_t longest;
} views[VIEWS] = {
	[VIEW_NONE] = {"none", 0},
	[VIEW_REQ_SENT] = {"REQ sent", LONGEST_REQUEST},
	[VIEW_REQ_RECEIVED] = {"REQ received", 0},
	[VIEW_REP_SENT] = {"REP sent", LONGEST_REQUEST},
	[VIEW_REP_RECEIVED] = {"REP received", 0},
	[VIEW_ESTABLISHED] = {"established", 0},
	[VIEW_DREQ_SENT] = {"DREQ sent", LONGEST_DISCONNECT},
	[VIEW_DREQ_RECEIVED] = {"DREQ received", 0},
	[VIEW_TIMEWAIT] = {"TIMEWAIT", 10 * SECOND},
	[VIEW_CLOSED] = {"closed", 0},
	[VIEW_SIDR_REQ_SENT] = {"SIDR_REQ sent", LONGEST_REQUEST},
	[VIEW_SIDR_REQ_RECEIVED] = {"SIDR_REQ received", 0},
	[VIEW_SIDR_CLOSED] = {"SIDR closed", 0},
};

const char *model_view_str(enum view view)
{
	return views[view].name;
}

/* The view after each event; VIEW_NONE: the event must not come. */
static const enum view after[VIEWS][ROCI_CM_EVENT_KINDS] = {
	[VIEW_NONE] =
		{[ROCI_CM_REQ_RECEIVED] = VIEW_REQ_RECEIVED, [ROCI_CM_SIDR_REQ_RECEIVED] = VIEW_SIDR_REQ_RECEIVED},
	[VIEW_REQ_SENT] = {[ROCI_CM_REP_RECEIVED] = VIEW_REP_RECEIVED,
			   [ROCI_CM_REJ_RECEIVED] = VIEW_CLOSED,
			   [ROCI_CM_REQ_ERROR] = VIEW_CLOSED},
	[VIEW_REQ_RECEIVED] = {[ROCI_CM_REJ_RECEIVED] = VIEW_CLOSED},
	[VIEW_REP_SENT] = {[ROCI_CM_ESTABLISHED] = VIEW_ESTABLISHED,
			   [ROCI_CM_REJ_RECEIVED] = VIEW_CLOSED,
			   [ROCI_CM_REP_ERROR] = VIEW_CLOSED,
			   [ROCI_CM_DREQ_RECEIVED] = VIEW_DREQ_RECEIVED},
	[VIEW_REP_RECEIVED] = {[ROCI_CM_REJ_RECEIVED] = VIEW_CLOSED, [ROCI_CM_DREQ_RECEIVED] = VIEW_DREQ_RECEIVED},
	[VIEW_ESTABLISHED] = {[ROCI_CM_DREQ_RECEIVED] = VIEW_DREQ_RECEIVED,
			      [ROCI_CM_REJ_RECEIVED] = VIEW_TIMEWAIT,
			      /* the peer uses its QP again: our own manager has sent the DREQ */
			      [ROCI_CM_DREP_RECEIVED] = VIEW_TIMEWAIT,
			      [ROCI_CM_DREQ_ERROR] = VIEW_TIMEWAIT},
	[VIEW_DREQ_SENT] = {[ROCI_CM_DREP_RECEIVED] = VIEW_TIMEWAIT, [ROCI_CM_DREQ_ERROR] = VIEW_TIMEWAIT},
	[VIEW_TIMEWAIT] = {[ROCI_CM_TIMEWAIT_EXIT] = VIEW_CLOSED},
	[VIEW_SIDR_REQ_SENT] =
		{[ROCI_CM_SIDR_REP_RECEIVED] = VIEW_SIDR_CLOSED, [ROCI_CM_SIDR_ERROR] = VIEW_SIDR_CLOSED},
};

void model_enter(struct end *end, enum view view)
{
	end->view = view;
	end->since = sim.now;
	end->was_established = end->was_established || view == VIEW_ESTABLISHED;
}

void model_event(struct end *end, const struct roci_cm_event *ev)
{
	enum view next = after[end->view][ev->kind];

	sim_trace("host %u end %u (%s): %s", end->host, end->index, views[end->view].name, cm_event_name(ev->kind));
	if (end->destroyed)
		sim_fail("end %u was destroyed and has an event: %s", end->index, cm_event_name(ev->kind));
	if (next == VIEW_NONE)
		sim_fail("end %u is in %s and has an event: %s", end->index, views[end->view].name,
			 cm_event_name(ev->kind));
	model_enter(end, next);
}

void model_check_no_service(const struct end *active)
{
	const struct host *there = &sim.hosts[!active->host];
	uint64_t longest;

	if (sim.hostile || active->service == SERVICES)
		return;
	longest = there->closed_longest[active->service];
	if (there->closed_at[active->service] && sim.now - there->closed_at[active->service] > longest)
		longest = sim.now - there->closed_at[active->service];
	if (longest < PENDING)
		sim_fail("end %u was rejected for service %u, which had no listener for %llu ms at most", active->index,
			 active->service, (unsigned long long)(longest / MS));
}

void model_check_request(const struct end *passive, const struct roci_cm_event *ev)
{
	const struct end *active = passive->peer;
	const struct roci_cm_peer *peer = ev->peer;

	if (peer->qpn != active->qpn || peer->starting_psn != active->psn ||
	    peer->initiator_depth != active->resources || peer->responder_resources != active->depth)
		sim_fail("end %u: the REQ is not the one of end %u", passive->index, active->index);
	if (memcmp(ev->path->dgid, sim.hosts[active->host].gid, 16) ||
	    memcmp(ev->path->sgid, sim.hosts[passive->host].gid, 16))
		sim_fail("end %u: the request has the wrong path", passive->index);
	for (unsigned i = 0; i < sim.end_count; i++) {
		const struct end *other = &sim.ends[i];

		if (other != passive && other->peer == active && !other->active && !other->destroyed &&
		    other->view != VIEW_CLOSED && other->boots == sim.hosts[other->host].boots)
			sim_fail("ends %u and %u both have the request of end %u", other->index, passive->index,
				 active->index);
	}
}

void model_check_rep(const struct end *active, const struct roci_cm_event *ev)
{
	const struct end *passive = active->peer;
	const struct roci_cm_peer *peer = ev->peer;

	if (passive->peer != active)
		sim_fail("end %u: the REP is of end %u, which belongs to another request", active->index,
			 passive->index);
	if (peer->qpn != passive->qpn || peer->starting_psn != passive->psn ||
	    peer->initiator_depth != passive->resources || peer->responder_resources != passive->depth)
		sim_fail("end %u: the REP is not the one of end %u", active->index, passive->index);
}

void model_check_timeouts(void)
{
	for (unsigned i = 0; i < sim.end_count; i++) {
		const struct end *end = &sim.ends[i];
		uint64_t longest = views[end->view].longest;

		/* A damaged message may ask for hours. */
		if (!end->destroyed && longest && !sim.hostile && sim.now - end->since > longest)
			sim_fail("end %u has been %s for %llu s", i, views[end->view].name,
				 (unsigned long long)((sim.now - end->since) / SECOND));
	}
}

static bool alive(const struct end *end)
{
	return end && !end->destroyed && end->boots == sim.hosts[end->host].boots && sim.hosts[end->host].cm;
}

/* Half-open is allowed only where the peer is gone, or where its last message is sent once and may be lost. */
void model_check_agreement(void)
{
	for (unsigned i = 0; i < sim.end_count; i++) {
		struct end *end = &sim.ends[i];

		if (!alive(end) || end->view != VIEW_ESTABLISHED)
			continue;
		if (!alive(end->peer) || end->peer->rejected) { /* a REJ is sent once */
			sim.half_open++;
			continue;
		}
		if (end->peer->view == VIEW_CLOSED)
			sim.half_open++; /* it timed out during the blackout */
		else if (end->peer->view == VIEW_REP_RECEIVED && !end->active)
			continue; /* established by roci_conn_notify(), before the RTU */
		else if (end->peer->view != VIEW_ESTABLISHED)
			sim_fail("end %u is established, its peer %u is %s", end->index, end->peer->index,
				 model_view_str(end->peer->view));
		if (end->peer->view == VIEW_CLOSED && sim.blackout_from == sim.blackout_to && sim.loss < 200)
			sim_fail("end %u is established, its peer %u gave up", end->index, end->peer->index);
	}
}
