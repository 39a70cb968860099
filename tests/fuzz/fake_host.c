/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_host.h"

#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "device/capture.h"
#include "device/gsi.h"
#include "device/port_names.h"
#include "device/watch.h"
#include "random.h"

#define DOOR_FD  100
#define OFFER_FD 101

struct fake_host host;

static uint64_t seed;

static struct {
	enum fake_way way;
	struct roci_datagram datagram; /* bytes: NULL: nothing waits */
} waiting;

static unsigned take(enum fake_way way, struct roci_datagram *out)
{
	if (!waiting.datagram.bytes || waiting.way != way)
		return 0;
	*out = waiting.datagram;
	waiting.datagram.bytes = NULL;
	return 1;
}

/* ---- what a device calls ---- */

uint64_t roci_now(void)
{
	return host.now;
}

uint32_t roci_random32(void)
{
	return (uint32_t)random_next(&seed);
}

static unsigned max_run(struct roci_link *link, const struct roci_av *av)
{
	return 1;
}

static void send_frames(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fake_sent(&frames[i]);
}

static unsigned receive(struct roci_link *link, struct roci_datagram *out)
{
	return take(FAKE_UDP, out);
}

static const struct roci_link_ops ops = {.max_run = max_run, .send = send_frames, .recv = receive};
static struct roci_link link_of_host = {&ops};

int roci_udp_listen(struct roci_udp *udp, int index)
{
	return host.no_port ? -EADDRINUSE : 0;
}

uint16_t roci_udp_mad_port(struct roci_udp *udp, unsigned index)
{
	return ROCI_UDP_PORT;
}

bool roci_udp_next_error(struct roci_udp *udp, struct roci_udp_error *out)
{
	return false;
}

int roci_udp_route(struct roci_udp *udp, uint64_t now, unsigned index, const uint8_t dgid[16], uint32_t *carries)
{
	*carries = 1472;
	return 0;
}

void roci_udp_repair(struct roci_udp *udp)
{
}

int roci_side_door_fd(const struct roci_side_door *door)
{
	return DOOR_FD;
}

unsigned roci_side_door_recv(struct roci_side_door *door, int fd, struct roci_datagram *out, uint64_t *malformed)
{
	return take(fd == DOOR_FD ? FAKE_DOOR : FAKE_OFFER, out);
}

int roci_side_door_send(struct roci_side_door *door, unsigned slot, const struct roci_arrival *from, uint32_t segment,
			struct iovec *iov, unsigned iov_count)
{
	CHECK(slot && (slot != FAKE_SLOT || host.no_port));
	return fake_forwarded(from);
}

int roci_door_queue_send(struct roci_door_queue *q, unsigned slot, const struct roci_arrival *from, uint32_t segment,
			 struct iovec *iov, unsigned iov_count)
{
	return roci_side_door_send(NULL, slot, from, segment, iov, iov_count);
}

void roci_door_queue_retry(struct roci_door_queue *q)
{
}

int roci_side_door_offer(struct roci_side_door *door, unsigned ps, uint16_t port, const struct roci_arrival *from,
			 uint32_t segment, struct iovec *iov, unsigned iov_count)
{
	return port == FAKE_PORT_FOREIGN ? fake_forwarded(from) : -ESRCH;
}

bool roci_side_door_alive(unsigned slot)
{
	return slot >= FAKE_SLOT && slot <= FAKE_FOREIGN;
}

bool roci_registry_alive(const struct roci_registry *reg, unsigned slot)
{
	return slot == FAKE_SLOT || slot == FAKE_SIBLING;
}

void roci_ports_reset(struct roci_registry *reg)
{
}

unsigned roci_ports_owner(const struct roci_registry *reg, unsigned ps, uint16_t port, const uint8_t address[16])
{
	return port == FAKE_PORT_OURS ? FAKE_SLOT : port == FAKE_PORT_SIBLING ? FAKE_SIBLING : 0;
}

unsigned roci_ports_other_family(const struct roci_registry *reg, unsigned ps, uint16_t port, const uint8_t address[16])
{
	return port == FAKE_PORT_OTHER_FAMILY ? FAKE_SLOT : 0;
}

bool roci_ports_listened_to(const struct roci_registry *reg, unsigned ps, uint16_t port)
{
	return port >= FAKE_PORT_OURS && port <= FAKE_PORT_OTHER_FAMILY;
}

int roci_ports_bind(struct roci_registry *reg, const struct roci_cm_bind *ask, unsigned *index, uint16_t *port)
{
	return -EADDRINUSE; /* targets listen by roci_cm_listen() */
}

int roci_ports_listen(struct roci_registry *reg, unsigned index)
{
	return 0;
}

void roci_ports_release(struct roci_registry *reg, unsigned index)
{
}

int roci_port_names_open(struct roci_port_names *all)
{
	return 0;
}

void roci_port_names_close(struct roci_port_names *all)
{
}

void roci_port_names_close_in_child(struct roci_port_names *all)
{
}

int roci_port_names_add(struct roci_port_names *all, unsigned ps, uint16_t port, bool shared)
{
	return 0;
}

void roci_port_names_remove(struct roci_port_names *all, unsigned ps, uint16_t port)
{
}

struct roci_port_name *roci_port_names_find(struct roci_port_names *all, unsigned ps, uint16_t port)
{
	static struct roci_port_name ours = {.told = true}; /* else it says so on stderr */

	return port == FAKE_PORT_OURS || port == FAKE_PORT_OTHER_FAMILY ? &ours : NULL;
}

void roci_port_names_retry(struct roci_port_names *all)
{
}

int roci_port_names_ready(const struct roci_port_names *all)
{
	return waiting.datagram.bytes && waiting.way == FAKE_OFFER ? OFFER_FD : -1;
}

int roci_progress_watch(struct roci_progress *p, int fd, uint64_t event_data)
{
	return 0;
}

void roci_progress_wake_now(struct roci_device *dev)
{
}

unsigned roci_local_receive(struct roci_local *l, uint64_t now)
{
	return 0;
}

bool roci_local_wakeup_came(const struct roci_local *l)
{
	return false;
}

void roci_watch_change(struct roci_device *dev)
{
}

void roci_capture_cm_event(struct roci_link *capture, const struct roci_cm_event *event)
{
}

int roci_device_listen(struct roci_device *dev, int sgid_index)
{
	return 0;
}

/* The host has one way to everywhere. */
int roci_device_source_of(struct roci_device *dev, const uint8_t dgid[16], uint8_t sgid[16])
{
	memcpy(sgid, host.dev.gids.entries[0].gid, 16);
	return 0;
}

int roci_device_make_av(struct roci_device *dev, const struct roci_ah_params *params, struct roci_av *av)
{
	*av = (struct roci_av){.mtu = 1024, .sgid_index = params->sgid_index, .mad_port = ROCI_UDP_PORT};
	memcpy(av->sgid, dev->gids.entries[params->sgid_index].gid, 16);
	memcpy(av->dgid, params->dgid, 16);
	return 0;
}

/* ---- for the target ---- */

static void fake_cm_end(void)
{
}

void fake_host_open(const uint8_t (*gids)[16], unsigned count, uint64_t random)
{
	struct roci_device *dev = &host.dev;

	memset(&host, 0, sizeof(host));
	seed = random;
	host.now = 1000000000;
	dev->gids.count = (int)count;
	for (unsigned i = 0; i < count; i++) {
		memcpy(dev->gids.entries[i].gid, gids[i], 16);
		dev->gids.entries[i].state = ROCI_GID_READY;
		dev->gids.entries[i].ifindex = 1;
	}
	dev->registry.slot = FAKE_SLOT;
	dev->stats_map.file = &host.counters;
	dev->stats = &host.counters.device;
	dev->links.top = &link_of_host;
	roci_door_trust_init(&dev->receive.trust);
	random_fill(&seed, dev->nat_key.bytes, sizeof(dev->nat_key.bytes));
	dev->engine = roci_engine_create();
	CHECK(dev->engine && !roci_cm_host_open(dev));
	roci_engine_nat_key(dev->engine, &dev->nat_key);
	roci_cm_host_attach(dev, fake_cm_event, fake_cm_end);
}

void fake_host_close(void)
{
	roci_cm_host_close(&host.dev);
	roci_engine_destroy(host.dev.engine);
}

void fake_arrive(enum fake_way way, struct roci_arrival *from, const uint8_t *bytes, uint32_t len)
{
	uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees an overrun */

	CHECK(exact);
	memcpy(exact, bytes, len);
	from->forwarded = way != FAKE_UDP;
	from->offered = way == FAKE_OFFER;
	waiting.way = way;
	waiting.datagram = (struct roci_datagram){.bytes = exact, .from = from, .len = len};
	roci_receive_door_ready(&host.dev.receive);
	CHECK(roci_receive(&host.dev, host.now) == 1);
	free(exact);
}

void fake_send_out(void)
{
	static struct roci_tx_batch batch;

	while (roci_engine_tx(host.dev.engine, host.now, &batch)) {
		for (unsigned i = 0; i < batch.count; i++) {
			const struct roci_tx_packet *tx = &batch.packets[i];
			struct roci_frame frame = roci_frame(tx->av, tx->header, tx->header_len,
							     batch.spans + tx->first_span, tx->span_count);

			fake_sent(&frame);
		}
		roci_engine_tx_done(host.dev.engine, host.now);
	}
}

void fake_pass(uint64_t ns)
{
	uint64_t end = host.now + ns;

	while (host.now < end) {
		uint64_t cm = roci_cm_host_deadline(&host.dev), engine = roci_engine_deadline(host.dev.engine);
		uint64_t next = cm < engine ? cm : engine;

		host.now = next >= end ? end : next > host.now ? next : host.now + 1;
		roci_engine_timers(host.dev.engine, host.now);
		roci_cm_host_drive(&host.dev, host.now);
		fake_send_out();
	}
}
