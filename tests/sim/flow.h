/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bulk transfer between two engines: an RC QP that always has WRITEs, SENDs or READs to do, or a UC QP that has
 * WRITEs. Packets go as headers and a pointer to their payload, which nobody changes.
 */
#ifndef ROCI_SIM_FLOW_H
#define ROCI_SIM_FLOW_H

#include "engine/engine.h"

#define FLOW_MESSAGE    65536 /* bytes of a work request */
#define FLOW_WIRE_BYTES 28    /* IPv4 and UDP headers */
#define FLOW_DISK_RECVS 32    /* receives that a slow receiver has, in all */

#define FLOW_EARLY (UINT64_C(1) << 30) /* bytes for packets that overtook others */
#define FLOW_COPY  1024                /* bytes of payload that an engine may have built itself, and uses again */

enum flow_mode { FLOW_WRITE, FLOW_SEND, FLOW_READ, FLOW_UC };

struct flow_packet {
	struct flow_packet *next_free;
	struct flow_side *to;
	bool ce;
	uint16_t src_port;
	uint32_t header_len, payload_len;
	const uint8_t *payload; /* of the sender's memory, or `copy` where it is short */
	uint8_t copy[FLOW_COPY];
	uint8_t header[ROCI_MAX_HEADER_BYTES];
};

struct flow_side {
	struct flow *flow;
	unsigned index; /* 0: posts the work requests */
	struct roci_engine *engine;
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mr *mr;
	uint32_t key;
	uint8_t *memory;  /* FLOW_MESSAGE bytes */
	uint64_t wake_at; /* of the wake-up that is under way */
	unsigned full;    /* receives whose content is still to be written */
	uint64_t disk_at; /* when the next one is; ROCI_NEVER: none is full */
};

struct flow_spec {
	enum flow_mode mode;
	uint32_t mtu;          /* enum ibv_mtu */
	uint8_t traffic_class; /* of its packets */
	bool standard;         /* the receiver is another implementation: it offers nothing beyond the standard */
	uint64_t disk_bps;     /* SEND: the receiver writes so fast what it received, and only then receives more; 0: at
				  once */
	uint8_t timeout;       /* of the QPs, 4.096 us * 2^timeout; retry_cnt is 7 */
	uint32_t max_datagram; /* UDP payload that the interface takes; 0: not known, so no packet is longer than mtu */
};

struct flow {
	unsigned number;
	struct flow_spec spec;
	struct flow_side side[2];
	uint64_t failed_at; /* a work request completed with an error; 0: none did */
	uint64_t done;      /* payload bytes of completed work requests; UC completes what was sent */
	uint64_t posted;
	uint64_t batches, packets; /* of the side that sends payload */
	/* Takes a packet of a side. */
	void (*send)(struct flow *f, struct flow_side *from, const struct roci_tx_packet *tx,
		     const struct roci_span *spans, uint32_t wire_bytes);
};

void flow_create(struct flow *f, unsigned number, const struct flow_spec *spec, uint64_t now);
void flow_destroy(struct flow *f);
/* Posts what there is room for, sends what is ready, takes completions. */
void flow_pump(struct flow_side *s, uint64_t now);
void flow_receive(const struct flow_packet *p, uint64_t now);

#endif
