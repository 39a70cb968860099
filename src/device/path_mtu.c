/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/path_mtu.h"

#include <string.h>

#include "cm/msg.h"
#include "device/device_state.h"
#include "device/gsi.h"
#include "wire/mtu.h"
#include "wire/mtu_probe.h"

/* ---- what is known ---- */

static const uint8_t anywhere[16];

static unsigned place_of(const uint8_t from[16], const uint8_t gid[16])
{
	uint32_t hash = 0;

	for (unsigned i = 0; i < 16; i++)
		hash = (hash * 31 + from[i]) * 31 + gid[i];
	return hash % ROCI_PATH_MTU_PLACES;
}

static bool has(const struct roci_path_mtus *m, uint64_t now, const uint8_t from[16], const uint8_t gid[16])
{
	unsigned i = place_of(from, gid);

	return now < m->places[i].until && !memcmp(m->places[i].from, from, 16) && !memcmp(m->places[i].gid, gid, 16);
}

/* As enum ibv_mtu; 0: not known, or no longer. */
static uint8_t find(const struct roci_path_mtus *m, uint64_t now, const uint8_t from[16], const uint8_t gid[16])
{
	return has(m, now, from, gid) ? m->places[place_of(from, gid)].mtu : 0;
}

static void keep(struct roci_path_mtus *m, uint64_t until, const uint8_t from[16], const uint8_t gid[16], uint8_t mtu)
{
	unsigned i = place_of(from, gid);

	memcpy(m->places[i].from, from, 16);
	memcpy(m->places[i].gid, gid, 16);
	m->places[i].until = until;
	m->places[i].mtu = mtu;
}

void roci_path_mtu_learn(struct roci_path_mtus *m, uint64_t now, const uint8_t from[16], const uint8_t gid[16],
			 uint8_t mtu)
{
	keep(m, now + ROCI_PATH_MTU_NS, from, gid, mtu);
}

void roci_path_mtu_nobody(struct roci_path_mtus *m, uint64_t now, const uint8_t gid[16])
{
	keep(m, now + ROCI_PATH_MTU_NOBODY, anywhere, gid, 0);
}

uint32_t roci_path_mtu_carries(const struct roci_path_mtus *m, uint64_t now, const uint8_t from[16],
			       const uint8_t gid[16])
{
	uint8_t mtu = find(m, now, from, gid);

	return mtu ? roci_mtu_datagram_bytes(mtu) : 0;
}

uint8_t roci_device_path_mtu(struct roci_device *dev, unsigned sgid_index, const uint8_t dgid[16])
{
	uint64_t now = roci_now();
	uint32_t carries = 0;
	uint8_t limit, mtu;

	if (dev->dead || sgid_index >= ROCI_MAX_GIDS || !roci_gid_is_present(&dev->gids.entries[sgid_index]))
		return roci_mtu_code(1024);
	mtu = roci_mtu_code(dev->gids.entries[sgid_index].path_mtu);
	limit = find(&dev->path_mtus, now, dev->gids.entries[sgid_index].gid, dgid);
	if (limit && limit < mtu)
		mtu = limit;
	if (roci_udp_route(dev->links.udp, now, sgid_index, dgid, &carries) || !carries)
		return mtu;
	limit = roci_mtu_code_of_datagram(carries);
	return limit < mtu ? limit : mtu;
}

/* ---- probes ---- */

#define COPIES 2 /* of each: one packet may be lost on any path */
#define SPANS  3

struct probes {
	struct roci_frame frames[COPIES * ROCI_MTU_CODE_MAX];
	uint8_t headers[COPIES * ROCI_MTU_CODE_MAX][ROCI_MAX_HEADER_BYTES];
	struct roci_span spans[ROCI_MTU_CODE_MAX][SPANS];
	unsigned count;
};

static void add(struct probes *p, const struct roci_av *av, unsigned code)
{
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_MTU_PROBE,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = ROCI_QPN_GSI,
				  .payload_len = roci_mtu_probe_bytes(code)};
	uint8_t *header = p->headers[p->count];
	unsigned len = roci_packet_build(&pkt, header);

	p->frames[p->count] = roci_frame(av, header, len, p->spans[code - 1], SPANS);
	p->frames[p->count++].whole = true;
}

/* The longest first: the shortest says that all have been sent. */
static void send_probes(struct roci_device *dev, const struct roci_av *av, const struct roci_cm_tx *tx, unsigned most)
{
	static const uint8_t zeros[ROCI_MTU_PROBE_MOST_BYTES];
	struct roci_hello hello = {.token = tx->nat.token, .cookie = tx->nat.cookie};
	uint8_t head[ROCI_HELLO_BYTES];
	struct probes p = {.count = 0};

	memcpy(hello.src, tx->sgid, 16);
	memcpy(hello.dst, tx->dgid, 16);
	roci_hello_build(&hello, head);
	for (unsigned code = ROCI_MTU_CODE_MIN; code <= most; code++) {
		struct roci_span *s = p.spans[code - 1];

		s[0] = (struct roci_span){head, sizeof(head)};
		s[1] = (struct roci_span){(void *)tx->mad, ROCI_CM_MAD_BYTES};
		s[2] = (struct roci_span){(void *)zeros, roci_mtu_probe_bytes(code) - ROCI_MTU_PROBE_LEAST_BYTES};
	}
	for (unsigned i = 0; i < COPIES; i++)
		for (unsigned code = most; code > ROCI_MTU_CODE_MIN; code--)
			add(&p, av, code);
	for (unsigned i = 0; i < COPIES; i++)
		add(&p, av, ROCI_MTU_CODE_MIN);
	roci_link_send(dev->links.top, p.frames, p.count);
	dev->stats->mtu_probes_sent += p.count;
}

void roci_path_mtu_probe(struct roci_device *dev, uint64_t now, const struct roci_av *av, const struct roci_cm_tx *tx)
{
	struct roci_cm_msg msg;

	if (has(&dev->path_mtus, now, tx->sgid, tx->dgid) || has(&dev->path_mtus, now, anywhere, tx->dgid) ||
	    roci_gids_find(&dev->gids, tx->dgid, 0) >= 0 || roci_cm_msg_parse(&msg, tx->mad) != ROCI_CM_PARSE_OK ||
	    msg.attribute != ROCI_CM_ATTR_REQ || !roci_mtu_code_is_valid(msg.mtu))
		return;
	send_probes(dev, av, tx, msg.mtu);
}
