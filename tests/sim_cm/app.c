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

void app_host_up(unsigned h)
{
	struct host *host = &sim.hosts[h];
	struct roci_cm_config config = {
		.id_base = (1 + h + 2 * host->life) << 22,
		.id_mask = (1u << 22) - 1,
		.random = draw,
		.context = &sim.rng,
	};

	host->cm = roci_cm_create(&config);
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
	host->life++;
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
		.life = sim.hosts[host].life,
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
	sim_schedule(EV_ACT, sim.now + sim_think())->end = end;
}

/* The consumer's part of the private data says who asks. */
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

static void begin_sidr(struct end *end, struct roci_cm_bytes private)
{
	struct roci_cm_resolve ask = {
		.service_id = FIRST_SERVICE + end->service,
		.path = path_of(end),
		.private = private,
		.user = end,
	};

	end->sidr = true;
	model_enter(end, VIEW_SIDR_ASKING);
	if (roci_sidr_resolve(sim.hosts[end->host].cm, sim.now, &ask, &end->sidr_handle))
		sim_fail("end %u cannot resolve", end->index);
}

void app_begin(unsigned host)
{
	struct end *end = sim.hosts[host].cm ? new_end(host) : NULL;
	struct roci_cm_connect ask;
	uint8_t private[64];

	if (!end)
		return;
	end->active = true;
	ask = (struct roci_cm_connect){
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
		begin_sidr(end, ask.private);
	} else {
		model_enter(end, VIEW_ASKING);
		if (roci_conn_connect(sim.hosts[host].cm, sim.now, &ask, &end->conn))
			sim_fail("end %u cannot connect", end->index);
	}
	sim_trace("host %u end %u asks", host, end->index);
	if (sim_chance(100)) /* and may lose interest */
		act_later(end);
}

void app_let_go(struct end *end)
{
	if (end->destroyed)
		return;
	sim_trace("host %u end %u (%s) lets go", end->host, end->index, model_view_str(end->view));
	end->destroyed = true;
	if (end->conn)
		roci_conn_destroy(end->conn, sim.now);
	else
		roci_sidr_destroy(end->sidr_handle, sim.now);
}

/* ---- being told ---- */

static void told_request(unsigned host, const struct roci_cm_event *ev)
{
	struct end *end = new_end(host);
	unsigned asker = ((const uint8_t *)ev->private.data)[ROCI_CM_IP_BYTES];

	if (ev->user != &sim.hosts[host])
		sim_fail("a request has another listener's user");
	if (!end || (asker >= sim.end_count && sim.hostile)) {
		if (end)
			sim.end_count--;
		if (ev->conn)
			roci_conn_destroy(ev->conn, sim.now);
		else
			roci_sidr_destroy(ev->sidr, sim.now);
		return;
	}
	end->peer = &sim.ends[asker];
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

static void told_answer(struct end *end, const struct roci_cm_event *ev)
{
	unsigned answerer = ((const uint8_t *)ev->private.data)[0];

	end->peer = answerer < sim.end_count ? &sim.ends[answerer] : NULL;
	if (!sim.hostile) {
		if (!end->peer)
			sim_fail("end %u: the answer is of nobody", end->index);
		model_check_answer(end, ev);
	}
}

void app_told(unsigned host, const struct roci_cm_event *ev)
{
	struct end *end = ev->user;

	if (ev->kind == ROCI_CM_REQ_RECEIVED || ev->kind == ROCI_CM_SIDR_REQ_RECEIVED) {
		told_request(host, ev);
		return;
	}
	if (end->host != host)
		sim_fail("end %u is told by the other host", end->index);
	model_event(end, ev);
	if ((ev->kind == ROCI_CM_REJ_RECEIVED && ev->reason == ROCI_REJ_INVALID_SERVICE_ID) ||
	    (ev->kind == ROCI_CM_SIDR_REP_RECEIVED && ev->sidr_status == ROCI_SIDR_UNSUPPORTED))
		model_check_no_service(end);
	if (ev->kind == ROCI_CM_REP_RECEIVED)
		told_answer(end, ev);
	if (end->view != VIEW_TIMEWAIT && end->view != VIEW_OVER)
		act_later(end);
	else if (sim_chance(500))
		act_later(end);
}

/* ---- acting ---- */

static void must(const struct end *end, const char *what, int rc, bool allowed)
{
	if ((rc == 0) != allowed || (rc && rc != -EINVAL))
		sim_fail("end %u is %s: %s gives %d", end->index, model_view_str(end->view), what, rc);
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

	must(end, "accept", roci_conn_accept(end->conn, sim.now, &answer), end->view == VIEW_ASKED);
	if (end->view == VIEW_ASKED)
		model_enter(end, VIEW_ANSWERED);
}

static void establish(struct end *end)
{
	must(end, "establish", roci_conn_establish(end->conn, sim.now, (struct roci_cm_bytes){0}),
	     end->view == VIEW_GOT_ANSWER);
	if (end->view == VIEW_GOT_ANSWER)
		model_enter(end, VIEW_ESTABLISHED);
}

static void reject(struct end *end)
{
	bool allowed = end->view >= VIEW_ASKING && end->view <= VIEW_GOT_ANSWER;

	must(end, "reject",
	     roci_conn_reject(end->conn, sim.now, ROCI_REJ_CONSUMER_DEFINED, (struct roci_cm_bytes){0},
			      (struct roci_cm_bytes){0}),
	     allowed);
	end->rejected = end->rejected || allowed;
	if (allowed)
		model_enter(end, VIEW_OVER);
}

static void disconnect(struct end *end)
{
	bool leave = end->view == VIEW_ESTABLISHED, agree = end->view == VIEW_LEFT;

	must(end, "disconnect", roci_conn_disconnect(end->conn, sim.now, (struct roci_cm_bytes){0}), leave || agree);
	if (leave || agree)
		model_enter(end, leave ? VIEW_LEAVING : VIEW_TIMEWAIT);
}

static void act_sidr(struct end *end)
{
	struct roci_cm_sidr_answer answer = {.qpn = end->qpn, .status = ROCI_SIDR_SUCCESS};

	if (end->view == VIEW_SIDR_ASKED && sim_chance(800)) {
		if (roci_sidr_answer(end->sidr_handle, sim.now, &answer))
			sim_fail("end %u cannot answer", end->index);
		model_enter(end, VIEW_SIDR_OVER);
		act_later(end);
	} else {
		app_let_go(end);
	}
}

static void act_conn(struct end *end)
{
	static void (*const right[VIEWS])(struct end *) = {
		[VIEW_ASKED] = accept,
		[VIEW_GOT_ANSWER] = establish,
		[VIEW_ESTABLISHED] = disconnect,
		[VIEW_LEFT] = disconnect,
	};
	static void (*const any[])(struct end *) = {accept, establish, reject, disconnect, app_let_go};

	if (!end->active && !end->taken) {
		end->taken = true;
		roci_conn_fetched(end->conn, sim.now);
	}
	if (end->view == VIEW_ESTABLISHED && sim_chance(300))
		return; /* content as it is */
	if (right[end->view] && sim_chance(850))
		right[end->view](end);
	else if (end->view == VIEW_ANSWERED && sim_chance(200))
		model_enter(end, roci_conn_notify(end->conn, sim.now) ? end->view : VIEW_ANSWERED);
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
