/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/cm_host.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/abstract_name.h"
#include "device/capture.h"
#include "device/device_state.h"
#include "device/gsi.h"
#include "device/hold.h"
#include "device/nat.h"
#include "device/port_names.h"
#include "wire/gid.h"
#include "wire/mtu.h"

#define CHECK_NS   1000000000u /* between checks for peers of this host that have died */
#define NAMES_NS   1000000000u /* between attempts to take the names of ports that other processes had */
#define BINDS      8           /* random ports that other registries may have */
#define PENDING_NS 5000000u    /* between checks for processes of this host that listen by now */

struct roci_cm_service {
	unsigned index; /* of the host's port table */
	unsigned ps;
	uint16_t port;
	struct roci_listener *listener; /* or NULL */
};

/* A set of slots of the registry. */
struct slots {
	uint64_t bits[ROCI_SLOTS / 64];
};

struct roci_cm_host {
	struct roci_cm *cm;
	roci_cm_event_fn *on_event; /* NULL: nobody is attached, so there are no events either */
	roci_cm_events_end_fn *on_end;
	bool reported; /* events, since it last called that */
	struct roci_gsi gsi;
	struct roci_hold hold; /* of MADs that calls of the program made */
	atomic_bool holds;     /* MADs wait there; for readers without the device's lock */
	unsigned received;     /* MADs, since it last sent */
	uint64_t check_at;     /* when to check whether peers have died; ROCI_CM_NEVER: none is on this host */
	uint64_t pending_at;   /* when to forward requests that wait for a listener; ROCI_CM_NEVER: none does */
	uint64_t names_at; /* when to take names of ports that other processes had; ROCI_CM_NEVER: none is missing */
	struct roci_port_names names;
	int asker;          /* roci_abstract_name_taken() */
	struct slots known; /* of peers of this host that were alive when they sent */
};

static uint32_t draw(void *context)
{
	return roci_random32();
}

static uint64_t guid_of(const struct roci_device *dev)
{
	uint8_t guid[8];
	uint64_t value = 0;

	roci_gid_guid(dev->gids.entries, dev->gids.count, guid);
	for (unsigned i = 0; i < sizeof(guid); i++)
		value = value << 8 | guid[i];
	return value;
}

int roci_cm_host_open(struct roci_device *dev)
{
	struct roci_cm_config config = {
		.id_base = dev->registry.slot << ROCI_COMM_SLOT_SHIFT,
		.id_mask = (1u << ROCI_COMM_SLOT_SHIFT) - 1,
		.random = draw,
		.ca_guid = guid_of(dev),
	};
	struct roci_cm_host *host = calloc(1, sizeof(*host));
	int err = -ENOMEM;

	if (!host)
		return err;
	host->cm = roci_cm_create(&config);
	if (!host->cm)
		goto err_free;
	err = roci_port_names_open(&host->names);
	if (!err)
		err = roci_progress_watch(&dev->progress, host->names.epoll_fd, ROCI_PROGRESS_DOOR);
	if (err)
		goto err_destroy;
	host->asker = -1;
	host->gsi.psn = roci_random32();
	host->check_at = host->pending_at = host->names_at = host->gsi.queue_at = ROCI_CM_NEVER;
	roci_ports_reset(&dev->registry);
	dev->cm_host = host;
	dev->nat_look_at = ROCI_CM_NEVER;
	return 0;
err_destroy:
	roci_cm_destroy(host->cm);
err_free:
	free(host);
	return err;
}

void roci_cm_host_close(struct roci_device *dev)
{
	roci_cm_destroy(dev->cm_host->cm);
	roci_abstract_name_close(&dev->cm_host->asker);
	roci_port_names_close(&dev->cm_host->names);
	free(dev->cm_host->gsi.queue);
	free(dev->cm_host);
	dev->cm_host = NULL;
}

void roci_cm_host_close_in_child(struct roci_device *dev)
{
	roci_abstract_name_close(&dev->cm_host->asker);
	roci_port_names_close_in_child(&dev->cm_host->names);
}

int roci_cm_host_attach(struct roci_device *dev, roci_cm_event_fn *on_event, roci_cm_events_end_fn *on_end)
{
	if (dev->dead)
		return -ENODEV;
	dev->cm_host->on_event = on_event;
	dev->cm_host->on_end = on_end;
	return 0;
}

struct roci_cm *roci_cm_host_cm(struct roci_device *dev)
{
	return dev->dead ? NULL : dev->cm_host->cm;
}

struct roci_gsi *roci_cm_host_gsi(struct roci_device *dev)
{
	return &dev->cm_host->gsi;
}

struct roci_port_names *roci_cm_host_port_names(struct roci_device *dev)
{
	return &dev->cm_host->names;
}

/* ---- services ---- */

/* A process of another registry listens to the port. */
static bool is_foreign(struct roci_device *dev, unsigned ps, uint16_t port)
{
	struct roci_abstract_name name = roci_abstract_name_port(ps, port);

	return !roci_ports_listened_to(&dev->registry, ps, port) &&
	       roci_abstract_name_taken(&dev->cm_host->asker, &name);
}

/* Of random ports one that no other registry listens to, most likely. */
static int bind_port(struct roci_device *dev, const struct roci_cm_bind *ask, struct roci_cm_service *service)
{
	int err = 0;

	if (ask->port && is_foreign(dev, ask->ps, ask->port))
		return -EADDRINUSE;
	for (unsigned i = 0; !err && i < BINDS; i++) {
		if (i)
			roci_ports_release(&dev->registry, service->index);
		err = roci_ports_bind(&dev->registry, ask, &service->index, &service->port);
		if (ask->port || (!err && (ask->connects || !is_foreign(dev, ask->ps, service->port))))
			break;
	}
	return err;
}

int roci_cm_host_bind(struct roci_device *dev, const struct roci_cm_bind *ask, struct roci_cm_service **out)
{
	struct roci_cm_service *service = dev->dead ? NULL : calloc(1, sizeof(*service));
	int err;

	if (!service)
		return dev->dead ? -ENODEV : -ENOMEM;
	service->ps = ask->ps;
	err = bind_port(dev, ask, service);
	if (err)
		free(service);
	else
		*out = service;
	return err;
}

uint16_t roci_cm_service_port_of(const struct roci_cm_service *service)
{
	return service->port;
}

/* Makes sure that requests to this address arrive, at every address where it is a wildcard. A warning on stderr tells
 * what cannot be had. */
static void open_addresses(struct roci_device *dev, const uint8_t gid[16])
{
	int index = roci_gids_find(&dev->gids, gid, 0);

	if (index >= 0 || roci_gid_is_any(gid) || roci_gid_is_any_ipv4(gid))
		roci_device_listen(dev, index);
}

void roci_cm_host_follow(struct roci_device *dev, const struct roci_gid_change *change)
{
	for (int i = 0; i < dev->gids.count; i++)
		if ((change->ready >> i & 1) && roci_cm_listens_at(dev->cm_host->cm, dev->gids.entries[i].gid))
			roci_device_listen(dev, i);
}

int roci_cm_host_listen(struct roci_device *dev, struct roci_cm_service *service, const struct roci_cm_listen *params)
{
	int err;

	if (dev->dead)
		return -ENODEV;
	if (service->listener)
		return -EINVAL;
	err = roci_cm_listen(dev->cm_host->cm, params, &service->listener);
	if (err)
		return err;
	err = roci_port_names_add(&dev->cm_host->names, service->ps, service->port,
				  roci_ports_listened_to(&dev->registry, service->ps, service->port));
	if (err)
		goto err_destroy;
	err = roci_ports_listen(&dev->registry, service->index);
	if (err)
		goto err_remove_name;
	if (dev->cm_host->names.missing && dev->cm_host->names_at == ROCI_CM_NEVER)
		dev->cm_host->names_at = roci_now() + NAMES_NS;
	open_addresses(dev, params->gid);
	return 0;
err_remove_name:
	roci_port_names_remove(&dev->cm_host->names, service->ps, service->port);
err_destroy:
	roci_listener_destroy(service->listener, roci_now());
	service->listener = NULL;
	return err;
}

void roci_cm_host_release(struct roci_device *dev, struct roci_cm_service *service)
{
	/* Of a forked child's inherited device the port is the parent's. */
	if (!dev->dead) {
		if (service->listener) {
			roci_listener_destroy(service->listener, roci_now());
			roci_port_names_remove(&dev->cm_host->names, service->ps, service->port);
		}
		roci_ports_release(&dev->registry, service->index);
	}
	free(service);
}

/* ---- peers that die ---- */

static bool has(const struct slots *set, unsigned slot)
{
	return set->bits[slot / 64] >> slot % 64 & 1;
}

static void add(struct slots *set, unsigned slot)
{
	set->bits[slot / 64] |= 1ull << slot % 64;
}

static void take_out(struct slots *set, const struct slots *others)
{
	for (unsigned i = 0; i < ROCI_SLOTS / 64; i++)
		set->bits[i] &= ~others->bits[i];
}

struct peer_check {
	struct roci_device *dev;
	struct slots alive, dead; /* as their side doors say */
};

static unsigned slot_of(uint32_t comm_id)
{
	return comm_id >> ROCI_COMM_SLOT_SHIFT;
}

/* A slot counts only where its owner was alive when it sent. The peer may be the kernel's (Soft-RoCE), whose ids have
 * no slots. */
static void remember_peer(struct roci_device *dev, uint64_t now, uint32_t sender_id)
{
	struct roci_cm_host *host = dev->cm_host;
	unsigned slot = slot_of(sender_id);

	if (!has(&host->known, slot) && !roci_side_door_alive(slot))
		return;
	add(&host->known, slot);
	if (host->check_at == ROCI_CM_NEVER)
		host->check_at = now + CHECK_NS;
}

/* Communication ids of other hosts tell nothing; there only the QP's keepalive notices. */
static bool peer_is_dead(void *context, const uint8_t gid[16], const struct roci_conn_info *info)
{
	struct peer_check *check = context;
	unsigned slot = slot_of(info->remote_comm_id);

	if (roci_engine_peer_lost(check->dev->engine, info->local_qpn))
		return true;
	if (roci_gids_find(&check->dev->gids, gid, 0) < 0 || slot == check->dev->registry.slot ||
	    !has(&check->dev->cm_host->known, slot))
		return false;
	if (!has(&check->alive, slot) && !has(&check->dead, slot))
		add(roci_side_door_alive(slot) ? &check->alive : &check->dead, slot);
	return has(&check->dead, slot);
}

/* A process that is killed does not disconnect. If it was on this host, its side door is gone; else its QPs are silent.
 */
static void check_peers(struct roci_device *dev, uint64_t now)
{
	struct roci_cm_host *host = dev->cm_host;
	struct peer_check check = {.dev = dev};
	static const struct slots none;

	roci_cm_disconnect_dead(host->cm, now, peer_is_dead, &check);
	take_out(&host->known, &check.dead); /* the next owner of such a slot is another process */
	host->check_at = memcmp(&check.alive, &none, sizeof(none)) ? now + CHECK_NS : ROCI_CM_NEVER;
}

void roci_cm_host_qp_failed(struct roci_device *dev)
{
	dev->cm_host->check_at = 0;
}

void roci_cm_host_established(struct roci_device *dev, const struct roci_conn *conn)
{
	const struct roci_conn_info *info = roci_conn_info(conn);

	roci_engine_answered(dev->engine, info->local_qpn, info->answer_ns);
}

/* ---- MADs that are ready ---- */

static void set_holds(struct roci_cm_host *host)
{
	atomic_store_explicit(&host->holds, host->hold.calls, memory_order_relaxed);
}

void roci_cm_host_called(struct roci_device *dev, bool more)
{
	struct roci_cm_host *host = dev->cm_host;

	if (!roci_cm_has_tx(host->cm))
		return;
	roci_hold_called(&host->hold, roci_now(), more);
	set_holds(host);
}

void roci_cm_host_disconnected(struct roci_device *dev)
{
	struct roci_cm_host *host = dev->cm_host;

	if (!roci_cm_has_tx(host->cm))
		return;
	roci_hold_disconnected(&host->hold, roci_now());
	set_holds(host);
}

/* Returns false where there is nothing to send, or it still waits. */
static bool send_ready(struct roci_device *dev, uint64_t now)
{
	struct roci_cm_host *host = dev->cm_host;
	bool any = false;

	if (roci_hold_waits(&host->hold, now))
		return false;
	while (roci_gsi_send(dev, now))
		any = true;
	host->received = 0;
	roci_hold_end(&host->hold);
	set_holds(host);
	return any;
}

bool roci_cm_host_holds(const struct roci_device *dev)
{
	return atomic_load_explicit(&dev->cm_host->holds, memory_order_relaxed);
}

void roci_cm_host_send(struct roci_device *dev, uint64_t now)
{
	roci_hold_end(&dev->cm_host->hold);
	send_ready(dev, now);
}

void roci_cm_host_disconnect_all(struct roci_device *dev, uint64_t now)
{
	roci_cm_host_send(dev, now);
	roci_cm_disconnect_all(dev->cm_host->cm, now);
	roci_cm_host_send(dev, now);
}

/* ---- what ICMP and the kernel say ---- */

#define MAD_AT (ROCI_BTH_BYTES + 8) /* behind BTH and DETH */

static void take_errors(struct roci_device *dev, uint64_t now)
{
	struct roci_udp_error e;

	while (roci_udp_next_error(dev->links.udp, &e)) {
		if (e.err == -EMSGSIZE)
			roci_engine_path_carries(dev->engine, e.dgid, e.carries);
		if (e.len <= MAD_AT || roci_dest_qpn(e.quoted) != ROCI_QPN_GSI)
			continue;
		if (e.quoted[0] == ROCI_OPCODE_MTU_PROBE)
			roci_path_mtu_nobody(&dev->path_mtus, now, e.dgid);
		else if (e.quoted[0] == (ROCI_TRANSPORT_UD | ROCI_OP_SEND_ONLY))
			roci_cm_unreachable(dev->cm_host->cm, now, e.quoted + MAD_AT, e.len - MAD_AT, e.dgid, e.err);
	}
}

/* ---- path MTU ---- */

/* A peer has accepted a connection. A path MTU that the program chose shows nothing of the path. What is known is not
 * renewed, so that probes look again after ROCI_PATH_MTU_NS; of connections that began at once the smallest counts. */
static void learn_path_mtu(struct roci_device *dev, uint64_t now, const struct roci_cm_path *path)
{
	uint32_t known = roci_path_mtu_carries(&dev->path_mtus, now, path->sgid, path->dgid);
	int index = roci_gids_find(&dev->gids, path->sgid, path->ifindex);
	bool news = !known && index >= 0 && path->mtu == roci_device_path_mtu(dev, (unsigned)index, path->dgid);

	if (path->mtu_is_limit)
		news = !known || roci_mtu_datagram_bytes(path->mtu) < known;
	if (news)
		roci_path_mtu_learn(&dev->path_mtus, now, path->sgid, path->dgid, path->mtu);
}

/* ---- driving ---- */

static bool report_events(struct roci_device *dev, uint64_t now)
{
	struct roci_cm_host *host = dev->cm_host;
	struct roci_cm_event event;
	bool any = false;

	for (; roci_cm_next_event(host->cm, &event); any = host->reported = true) {
		if (dev->links.capture)
			roci_capture_cm_event(dev->links.capture, &event);
		if (event.kind == ROCI_CM_REP_RECEIVED)
			learn_path_mtu(dev, now, event.path);
		host->on_event(&event);
	}
	return any;
}

void roci_cm_host_rx(struct roci_device *dev, uint64_t now, const uint8_t *mad, const uint8_t sgid[16],
		     const uint8_t dgid[16], uint32_t sender_id, const struct roci_nat_terms *nat)
{
	struct roci_cm_host *host = dev->cm_host;
	int index = roci_gids_find(&dev->gids, dgid, 0);
	uint32_t ifindex = index < 0 ? 0 : dev->gids.entries[index].ifindex;

	if (roci_gids_find(&dev->gids, sgid, 0) >= 0)
		remember_peer(dev, now, sender_id);
	roci_cm_rx_nat(host->cm, now, mad, sgid, dgid, ifindex, nat);
	if (host->pending_at == ROCI_CM_NEVER && roci_cm_pending_count(host->cm))
		host->pending_at = now + PENDING_NS;
	report_events(dev, now);
	if (++host->received >= ROCI_GSI_BATCH)
		roci_cm_host_send(dev, now); /* also what waits: answers have few places */
}

/* Most turns find it so. It is looked up each time: a deadline that is remembered would have to be kept up to date. */
static bool has_nothing_to_do(const struct roci_device *dev, uint64_t now)
{
	const struct roci_cm_host *host = dev->cm_host;

	return !roci_cm_has_event(host->cm) && !roci_cm_has_tx(host->cm) && !host->received && !host->hold.calls &&
	       !host->reported && roci_cm_host_deadline(dev) > now;
}

void roci_cm_host_drive(struct roci_device *dev, uint64_t now)
{
	struct roci_cm_host *host = dev->cm_host;
	bool again;

	take_errors(dev, now);
	if (has_nothing_to_do(dev, now))
		return;
	do {
		again = report_events(dev, now);
		again = send_ready(dev, now) || again;
		if (host->pending_at <= now) {
			roci_gsi_forward_pending(dev, now);
			host->pending_at = roci_cm_pending_count(host->cm) ? now + PENDING_NS : ROCI_CM_NEVER;
			again = true;
		} else if (roci_cm_deadline(host->cm) <= now) {
			roci_cm_timers(host->cm, now);
			again = true;
		} else if (host->gsi.queue_at <= now) {
			roci_gsi_send_queued(dev, now);
		} else if (host->names_at <= now) {
			roci_port_names_retry(&host->names);
			host->names_at = host->names.missing ? now + NAMES_NS : ROCI_CM_NEVER;
		} else if (dev->nat_look_at <= now) {
			roci_nat_rehome(dev, now);
		} else if (host->check_at <= now) {
			check_peers(dev, now);
			again = true;
		}
	} while (again);
	if (host->reported)
		host->on_end();
	host->reported = false;
}

uint64_t roci_cm_host_deadline(const struct roci_device *dev)
{
	const struct roci_cm_host *host = dev->cm_host;
	uint64_t deadline = roci_cm_deadline(host->cm);

	if (roci_hold_deadline(&host->hold) < deadline)
		deadline = roci_hold_deadline(&host->hold);
	if (host->check_at < deadline)
		deadline = host->check_at;
	if (host->pending_at < deadline)
		deadline = host->pending_at;
	if (dev->nat_look_at < deadline)
		deadline = dev->nat_look_at;
	if (host->names_at < deadline)
		deadline = host->names_at;
	return host->gsi.queue_at < deadline ? host->gsi.queue_at : deadline;
}
