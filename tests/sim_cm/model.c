/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "sim_cm.h"

/* Longest that each view may last when it is the protocol's turn; 0: it is the application's. With 15 retransmissions
 * of at most 4.9 s, and as many MRAs of 17.5 s. */
#define LONGEST_ASKING  (16 * 23 * SECOND)
#define LONGEST_LEAVING (40 * SECOND)
#define HOLD            (400 * MS) /* a request waits so long for a listener */

static const struct {
	const char *name;
	uint64_t longest;
} views[VIEWS] = {
	[VIEW_NONE] = {"none", 0},
	[VIEW_ASKING] = {"asking", LONGEST_ASKING},
	[VIEW_ASKED] = {"asked", 0},
	[VIEW_ANSWERED] = {"answered", LONGEST_ASKING},
	[VIEW_GOT_ANSWER] = {"got an answer", 0},
	[VIEW_ESTABLISHED] = {"established", 0},
	[VIEW_LEAVING] = {"leaving", LONGEST_LEAVING},
	[VIEW_LEFT] = {"left", 0},
	[VIEW_TIMEWAIT] = {"TIMEWAIT", 10 * SECOND},
	[VIEW_OVER] = {"over", 0},
	[VIEW_SIDR_ASKING] = {"SIDR asking", LONGEST_ASKING},
	[VIEW_SIDR_ASKED] = {"SIDR asked", 0},
	[VIEW_SIDR_OVER] = {"SIDR over", 0},
};

const char *model_view_str(enum view view)
{
	return views[view].name;
}

/* Which event leads from which view to which; VIEW_NONE: it must not come. */
static const enum view after[VIEWS][ROCI_CM_EVENT_KINDS] = {
	[VIEW_NONE] = {[ROCI_CM_REQ_RECEIVED] = VIEW_ASKED, [ROCI_CM_SIDR_REQ_RECEIVED] = VIEW_SIDR_ASKED},
	[VIEW_ASKING] = {[ROCI_CM_REP_RECEIVED] = VIEW_GOT_ANSWER,
			 [ROCI_CM_REJ_RECEIVED] = VIEW_OVER,
			 [ROCI_CM_REQ_ERROR] = VIEW_OVER},
	[VIEW_ASKED] = {[ROCI_CM_REJ_RECEIVED] = VIEW_OVER},
	[VIEW_ANSWERED] = {[ROCI_CM_ESTABLISHED] = VIEW_ESTABLISHED,
			   [ROCI_CM_REJ_RECEIVED] = VIEW_OVER,
			   [ROCI_CM_REP_ERROR] = VIEW_OVER,
			   [ROCI_CM_DREQ_RECEIVED] = VIEW_LEFT},
	[VIEW_GOT_ANSWER] = {[ROCI_CM_REJ_RECEIVED] = VIEW_OVER, [ROCI_CM_DREQ_RECEIVED] = VIEW_LEFT},
	[VIEW_ESTABLISHED] = {[ROCI_CM_DREQ_RECEIVED] = VIEW_LEFT,
			      [ROCI_CM_REJ_RECEIVED] = VIEW_TIMEWAIT,
			      /* the peer has used its QP again: we were disconnected by our own manager */
			      [ROCI_CM_DREP_RECEIVED] = VIEW_TIMEWAIT,
			      [ROCI_CM_DREQ_ERROR] = VIEW_TIMEWAIT},
	[VIEW_LEAVING] = {[ROCI_CM_DREP_RECEIVED] = VIEW_TIMEWAIT, [ROCI_CM_DREQ_ERROR] = VIEW_TIMEWAIT},
	[VIEW_TIMEWAIT] = {[ROCI_CM_TIMEWAIT_EXIT] = VIEW_OVER},
	[VIEW_SIDR_ASKING] = {[ROCI_CM_SIDR_REP_RECEIVED] = VIEW_SIDR_OVER, [ROCI_CM_SIDR_ERROR] = VIEW_SIDR_OVER},
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
		sim_fail("end %u was destroyed and is told: %s", end->index, cm_event_name(ev->kind));
	if (next == VIEW_NONE)
		sim_fail("end %u is %s and is told: %s", end->index, views[end->view].name, cm_event_name(ev->kind));
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
	if (longest < HOLD)
		sim_fail("end %u is told that there is no service %u, which was closed for %llu ms at most",
			 active->index, active->service, (unsigned long long)(longest / MS));
}

void model_check_request(const struct end *passive, const struct roci_cm_event *ev)
{
	const struct end *active = passive->peer;
	const struct roci_cm_peer *peer = ev->peer;

	if (peer->qpn != active->qpn || peer->starting_psn != active->psn ||
	    peer->initiator_depth != active->resources || peer->responder_resources != active->depth)
		sim_fail("end %u: the request is not what end %u asked", passive->index, active->index);
	if (memcmp(ev->path->dgid, sim.hosts[active->host].gid, 16) ||
	    memcmp(ev->path->sgid, sim.hosts[passive->host].gid, 16))
		sim_fail("end %u: the request has the wrong path", passive->index);
	for (unsigned i = 0; i < sim.end_count; i++) {
		const struct end *other = &sim.ends[i];

		if (other != passive && other->peer == active && !other->active && !other->destroyed &&
		    other->view != VIEW_OVER && other->life == sim.hosts[other->host].life)
			sim_fail("ends %u and %u are both told of the request of end %u", other->index, passive->index,
				 active->index);
	}
}

void model_check_answer(const struct end *active, const struct roci_cm_event *ev)
{
	const struct end *passive = active->peer;
	const struct roci_cm_peer *peer = ev->peer;

	if (passive->peer != active)
		sim_fail("end %u: the answer is of end %u, which was asked by another", active->index, passive->index);
	if (peer->qpn != passive->qpn || peer->starting_psn != passive->psn ||
	    peer->initiator_depth != passive->resources || peer->responder_resources != passive->depth)
		sim_fail("end %u: the answer is not what end %u gave", active->index, passive->index);
}

void model_check_patience(void)
{
	for (unsigned i = 0; i < sim.end_count; i++) {
		const struct end *end = &sim.ends[i];
		uint64_t longest = views[end->view].longest;

		if (!end->destroyed && longest && sim.now - end->since > longest)
			sim_fail("end %u has been %s for %llu s", i, views[end->view].name,
				 (unsigned long long)((sim.now - end->since) / SECOND));
	}
}

static bool alive(const struct end *end)
{
	return end && !end->destroyed && end->life == sim.hosts[end->host].life && sim.hosts[end->host].cm;
}

/* A peer that let go, or that was killed, may have failed to make itself heard; one that is still there may not. */
void model_audit(void)
{
	for (unsigned i = 0; i < sim.end_count; i++) {
		struct end *end = &sim.ends[i];

		if (!alive(end) || end->view != VIEW_ESTABLISHED)
			continue;
		if (!alive(end->peer) || end->peer->rejected) { /* a REJ is sent once, and not answered */
			sim.half_open++;
			continue;
		}
		if (end->peer->view == VIEW_OVER)
			sim.half_open++; /* it gave up during the blackout */
		else if (end->peer->view == VIEW_GOT_ANSWER && !end->active)
			continue; /* roci_conn_notify(): established before the peer said so */
		else if (end->peer->view != VIEW_ESTABLISHED)
			sim_fail("end %u is established, its peer %u is %s", end->index, end->peer->index,
				 model_view_str(end->peer->view));
		if (end->peer->view == VIEW_OVER && sim.blackout_from == sim.blackout_to && sim.loss < 200)
			sim_fail("end %u is established, its peer %u gave up", end->index, end->peer->index);
	}
}
