/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "sim_cm.h"

#define FIRST_SERVICE 0x01060000 + 7000

static uint32_t draw(void *context)
{
	return (uint32_t)random_next(context);
}

/* ---- hosts ---- */

void app_host_boot(unsigned h)
{
	struct host *host = &sim.hosts[h];
	struct roci_cm_config config = {
		.id_base = (1 + h + 2 * host->boots) << 22,
		.id_mask = (1u << 22) - 1,
		.random = draw,
		.context = &sim.rng,
	};

	host->cm = roci_cm_create(&config);
	cover_forget(h);
	for (unsigned i = 0; i < SERVICES; i++)
		app_listen(h, i);
}

void app_listen(unsigned h, unsigned service)
{
	struct host *host = &sim.hosts[h];
	struct roci_cm_listen listen = {
		.service_id = FIRST_SERVICE + service,
		.backlog = service ? 1 + sim_below(4) : 0,
		.user = host,
	};

	if (!host->cm || host->listeners[service])
		return;
	sim_trace("host %u listens to service %u", h, service);
	if (roci_cm_listen(host->cm, &listen, &host->listeners[service]))
		sim_fail("host %u cannot listen", h);
	if (host->closed_at[service] && sim.now - host->closed_at[service] > host->closed_longest[service])
		host->closed_longest[service] = sim.now - host->closed_at[service];
	host->closed_at[service] = 0;
}

void app_close(unsigned h, unsigned service)
{
	struct host *host = &sim.hosts[h];

	if (!host->cm || !host->listeners[service])
		return;
	sim_trace("host %u closes service %u", h, service);
	roci_listener_destroy(host->listeners[service], sim.now);
	host->listeners[service] = NULL;
	host->closed_at[service] = sim.now;
}

void app_host_killed(unsigned h)
{
	struct host *host = &sim.hosts[h];

	sim_trace("host %u is killed", h);
	for (unsigned i = 0; i < sim.end_count; i++)
		if (sim.ends[i].host == h)
			sim.ends[i].destroyed = true;
	roci_cm_destroy(host->cm);
	host->cm = NULL;
	for (unsigned i = 0; i < SERVICES; i++) {
		host->listeners[i] = NULL;
		host->closed_at[i] = host->closed_at[i] ? host->closed_at[i] : sim.now;
	}
	host->boots++;
}

/* ---- ends ---- */

static struct end *new_end(unsigned host)
{
	struct end *end = &sim.ends[sim.end_count];

	if (sim.end_count == MAX_ENDS)
		return NULL;
	*end = (struct end){
		.index = sim.end_count,
		.host = host,
		.boots = sim.hosts[host].boots,
		.qpn = 0x1000 + sim.end_count,
		.psn = sim_below(1 << 24),
		.service = sim_below(SERVICES + 1),
		.resources = (uint8_t)sim_below(17),
		.depth = (uint8_t)sim_below(17),
	};
	sim.end_count++;
	return end;
}

static void act_later(struct end *end)
{
	sim_schedule(EV_ACT, sim.now + sim_think_time())->end = end;
}

/* Private data: the IP CM header, then the index of the active end. */
static unsigned fill_private(const struct end *end, uint8_t *to)
{
	const struct host *here = &sim.hosts[end->host], *there = &sim.hosts[!end->host];
	struct roci_cm_ip ip = {.src_port = (uint16_t)end->index, .ipv4 = true};

	memcpy(ip.src, here->gid, 16);
	memcpy(ip.dst, there->gid, 16);
	roci_cm_ip_build(&ip, to);
	to[ROCI_CM_IP_BYTES] = (uint8_t)end->index;
	return ROCI_CM_IP_BYTES + 1;
}

static struct roci_cm_path path_of(const struct end *end)
{
	struct roci_cm_path path = {.pkey = 0xffff, .mtu = 3, .packet_life = 16, .hop_limit = 64};

	memcpy(path.sgid, sim.hosts[end->host].gid, 16);
	memcpy(path.dgid, sim.hosts[!end->host].gid, 16);
	return path;
}

static void resolve(struct end *end, struct roci_cm_bytes private)
{
	struct roci_cm_resolve params = {
		.service_id = FIRST_SERVICE + end->service,
		.path = path_of(end),
		.private = private,
		.user = end,
	};

	end->sidr = true;
	model_enter(end, VIEW_SIDR_REQ_SENT);
	if (roci_sidr_resolve(sim.hosts[end->host].cm, sim.now, &params, &end->sidr_handle))
		sim_fail("end %u cannot resolve", end->index);
}

void app_connect(unsigned host)
{
	struct end *end = sim.hosts[host].cm ? new_end(host) : NULL;
	struct roci_cm_connect params;
	uint8_t private[64];

	if (!end)
		return;
	end->active = true;
	params = (struct roci_cm_connect){
		.service_id = FIRST_SERVICE + end->service,
		.path = path_of(end),
		.qpn = end->qpn,
		.starting_psn = end->psn,
		.responder_resources = end->resources,
		.initiator_depth = end->depth,
		.private = {private, fill_private(end, private)},
		.user = end,
	};
	if (sim_chance(150)) {
		resolve(end, params.private);
	} else {
		model_enter(end, VIEW_REQ_SENT);
		if (roci_conn_connect(sim.hosts[host].cm, sim.now, &params, &end->conn))
			sim_fail("end %u cannot connect", end->index);
	}
	sim_trace("host %u end %u connects", host, end->index);
	if (sim_chance(100)) /* and may withdraw */
		act_later(end);
}

void app_destroy(struct end *end)
{
	if (end->destroyed)
		return;
	sim_trace("host %u end %u (%s) is destroyed", end->host, end->index, model_view_str(end->view));
	end->destroyed = true;
	if (end->conn)
		roci_conn_destroy(end->conn, sim.now);
	else
		roci_sidr_destroy(end->sidr_handle, sim.now);
}

/* ---- events ---- */

static void request_event(unsigned host, const struct roci_cm_event *ev)
{
	struct end *end = new_end(host);
	unsigned active = ((const uint8_t *)ev->private.data)[ROCI_CM_IP_BYTES];

	if (ev->user != &sim.hosts[host])
		sim_fail("a request has the user of another listener");
	if (!end || (active >= sim.end_count && sim.hostile)) {
		if (end)
			sim.end_count--;
		if (ev->conn)
			roci_conn_destroy(ev->conn, sim.now);
		else
			roci_sidr_destroy(ev->sidr, sim.now);
		return;
	}
	end->peer = &sim.ends[active];
	end->conn = ev->conn;
	end->sidr_handle = ev->sidr;
	end->sidr = ev->sidr;
	model_event(end, ev);
	if (!sim.hostile && ev->conn)
		model_check_request(end, ev);
	if (ev->conn)
		roci_conn_set_user(ev->conn, end);
	else
		roci_sidr_set_user(ev->sidr, end);
	act_later(end);
}

static void rep_event(struct end *end, const struct roci_cm_event *ev)
{
	unsigned passive = ((const uint8_t *)ev->private.data)[0];

	end->peer = passive < sim.end_count ? &sim.ends[passive] : NULL;
	if (!sim.hostile) {
		if (!end->peer)
			sim_fail("end %u: the REP names no end", end->index);
		model_check_rep(end, ev);
	}
}

void app_event(unsigned host, const struct roci_cm_event *ev)
{
	struct end *end = ev->user;

	if (ev->kind == ROCI_CM_REQ_RECEIVED || ev->kind == ROCI_CM_SIDR_REQ_RECEIVED) {
		request_event(host, ev);
		return;
	}
	if (end->host != host)
		sim_fail("end %u has an event on the other host", end->index);
	model_event(end, ev);
	if ((ev->kind == ROCI_CM_REJ_RECEIVED && ev->reason == ROCI_REJ_INVALID_SERVICE_ID) ||
	    (ev->kind == ROCI_CM_SIDR_REP_RECEIVED && ev->sidr_status == ROCI_SIDR_UNSUPPORTED))
		model_check_no_service(end);
	if (ev->kind == ROCI_CM_REP_RECEIVED)
		rep_event(end, ev);
	if (end->view != VIEW_TIMEWAIT && end->view != VIEW_CLOSED)
		act_later(end);
	else if (sim_chance(500))
		act_later(end);
}

/* ---- calls ---- */

/* Fails unless the call succeeded exactly where it is allowed. */
static void check_result(const struct end *end, const char *what, int err, bool allowed)
{
	if ((err == 0) != allowed || (err && err != -EINVAL))
		sim_fail("end %u is %s: %s gives %d", end->index, model_view_str(end->view), what, err);
}

static void accept(struct end *end)
{
	uint8_t private = (uint8_t)end->index;
	struct roci_cm_accept answer = {
		.qpn = end->qpn,
		.starting_psn = end->psn,
		.responder_resources = end->resources,
		.initiator_depth = end->depth,
		.private = {&private, 1},
	};

	check_result(end, "accept", roci_conn_accept(end->conn, sim.now, &answer), end->view == VIEW_REQ_RECEIVED);
	if (end->view == VIEW_REQ_RECEIVED)
		model_enter(end, VIEW_REP_SENT);
}

static void establish(struct end *end)
{
	check_result(end, "establish", roci_conn_establish(end->conn, sim.now, (struct roci_cm_bytes){0}),
		     end->view == VIEW_REP_RECEIVED);
	if (end->view == VIEW_REP_RECEIVED)
		model_enter(end, VIEW_ESTABLISHED);
}

static void reject(struct end *end)
{
	bool allowed = end->view >= VIEW_REQ_SENT && end->view <= VIEW_REP_RECEIVED;

	check_result(end, "reject",
		     roci_conn_reject(end->conn, sim.now, ROCI_REJ_CONSUMER_DEFINED, (struct roci_cm_bytes){0},
				      (struct roci_cm_bytes){0}),
		     allowed);
	end->rejected = end->rejected || allowed;
	if (allowed)
		model_enter(end, VIEW_CLOSED);
}

static void disconnect(struct end *end)
{
	bool request = end->view == VIEW_ESTABLISHED, reply = end->view == VIEW_DREQ_RECEIVED;
	int err = roci_conn_disconnect(end->conn, sim.now, (struct roci_cm_bytes){0});

	/* A damaged REP may name a QPN that the peer uses later for something else. Then the connection is stale (IBTA
	 * 12.9.8.3.1), and the manager leaves it by itself. */
	if (!sim.hostile || !request || err != -EINVAL)
		check_result(end, "disconnect", err, request || reply);
	if (request || reply)
		model_enter(end, request ? VIEW_DREQ_SENT : VIEW_TIMEWAIT);
}

static void act_sidr(struct end *end)
{
	struct roci_cm_sidr_answer answer = {.qpn = end->qpn, .status = ROCI_SIDR_SUCCESS};

	if (end->view == VIEW_SIDR_REQ_RECEIVED && sim_chance(800)) {
		if (roci_sidr_answer(end->sidr_handle, sim.now, &answer))
			sim_fail("end %u cannot answer", end->index);
		model_enter(end, VIEW_SIDR_CLOSED);
		act_later(end);
	} else {
		app_destroy(end);
	}
}

static void act_conn(struct end *end)
{
	static void (*const expected[VIEWS])(struct end *) = {
		[VIEW_REQ_RECEIVED] = accept,
		[VIEW_REP_RECEIVED] = establish,
		[VIEW_ESTABLISHED] = disconnect,
		[VIEW_DREQ_RECEIVED] = disconnect,
	};
	static void (*const any[])(struct end *) = {accept, establish, reject, disconnect, app_destroy};

	if (!end->active && !end->fetched) {
		end->fetched = true;
		roci_conn_fetched(end->conn, sim.now, false);
	}
	if (end->view == VIEW_ESTABLISHED && sim_chance(300))
		return; /* stays connected */
	if (expected[end->view] && sim_chance(850))
		expected[end->view](end);
	else if (end->view == VIEW_REP_SENT && sim_chance(200))
		model_enter(end, roci_conn_notify(end->conn, sim.now) ? end->view : VIEW_REP_SENT);
	else
		any[sim_below(5)](end);
	if (!end->destroyed && sim_chance(500))
		act_later(end);
}

void app_act(struct end *end)
{
	if (end->destroyed)
		return;
	if (end->sidr)
		act_sidr(end);
	else
		act_conn(end);
}
