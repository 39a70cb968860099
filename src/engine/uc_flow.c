/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/uc_flow.h"

#include "wire/packet.h"

#define UNANSWERED_MAX 3                   /* then the peer is unresponsive, ... */
#define STOPPED_MAX    20                  /* ... and one that has answered before */
#define FAR_FROM       8                   /* round trips in a row: on a busy host some are long by chance, ... */
#define COUNTS_TWICE   UINT64_C(20000000)  /* ns: ... but hardly so long, ... */
#define COUNTS_FOUR    UINT64_C(200000000) /* ... and not so long */

void roci_uc_flow_answer(struct roci_uc_flow *f)
{
	if (f->unresponsive)
		f->paced = false;
	f->answered = true;
	f->stopped = f->unresponsive = f->ack_requested = false;
	f->unanswered = 0;
}

bool roci_uc_flow_silence(struct roci_uc_flow *f, bool near)
{
	bool due = f->ack_requested, patient = f->answered && near;

	f->ack_requested = f->counts = false;
	if (due) {
		f->unresponsive |= ++f->unanswered >= (patient ? STOPPED_MAX : UNANSWERED_MAX);
		f->stopped = patient && !f->unresponsive;
	}
	return due;
}

uint8_t roci_uc_flow_credits(uint32_t mtu, uint64_t room)
{
	uint64_t packets = room / roci_uc_flow_bytes(mtu, 1);

	return room ? roci_aeth_credit_code(packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX)
		    : ROCI_AETH_UNLIMITED_CREDITS;
}

uint64_t roci_uc_flow_room(uint32_t mtu, uint8_t syndrome)
{
	uint8_t code = syndrome & ROCI_AETH_VALUE_MASK;

	return code == ROCI_AETH_UNLIMITED_CREDITS ? UINT64_MAX : roci_uc_flow_bytes(mtu, roci_aeth_credits(code));
}

uint32_t roci_uc_flow_count(struct roci_uc_flow *f, uint32_t sent, uint32_t came, uint32_t *lost)
{
	uint32_t fresh = (came - f->came) & ROCI_PSN_MASK, late;

	*lost = 0;
	f->came = came & ROCI_PSN_MASK;
	if (!f->counts) {
		f->counts = true;
		f->missing = 0;
		return sent;
	}
	if (fresh >= sent) {
		late = fresh - sent < f->missing ? fresh - sent : f->missing;
		*lost = f->missing - late;
		f->missing = 0;
		return sent;
	}
	*lost = f->missing;
	f->missing = sent - fresh;
	return fresh;
}

static unsigned count_of(uint64_t rtt_ns)
{
	return rtt_ns >= COUNTS_FOUR ? 4 : rtt_ns >= COUNTS_TWICE ? 2 : 1;
}

bool roci_uc_flow_is_far(struct roci_uc_flow *f, uint64_t rtt_ns)
{
	f->near |= rtt_ns < ROCI_PATH_FAR_NS;
	if (f->near)
		return false;
	if (f->far < FAR_FROM)
		f->far = (uint8_t)(f->far + count_of(rtt_ns));
	return f->far >= FAR_FROM;
}
