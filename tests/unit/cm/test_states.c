/* SPDX-License-Identifier: BSD-2-Clause */
/* Every message in every state of a connection: the table of src/cm/conn_rx.c (IBTA 12.9.7), seen from outside. */
#include "pair.h"

enum { NO_EVENT = ROCI_CM_EVENT_KINDS, NO_MESSAGE = 0 };

/* One side of a connection in this state. */
struct place {
	enum roci_conn_state state;
	bool passive;
};

static const struct place places[] = {
	{ROCI_CONN_REQ_SENT, false},   {ROCI_CONN_REQ_WAITING, true},   {ROCI_CONN_REQ_RECEIVED, true},
	{ROCI_CONN_REP_SENT, true},    {ROCI_CONN_REP_RECEIVED, false}, {ROCI_CONN_ESTABLISHED, false},
	{ROCI_CONN_ESTABLISHED, true}, {ROCI_CONN_DREQ_SENT, false},    {ROCI_CONN_DREQ_RECEIVED, false},
	{ROCI_CONN_TIMEWAIT, true},    {ROCI_CONN_CLOSED, true},
};

struct reaction {
	struct place place;
	enum roci_cm_attribute message;
	enum roci_conn_state next;
	unsigned event, answer; /* or NO_EVENT, NO_MESSAGE */
};

#define ACTIVE(state)                                                                                                  \
	{                                                                                                              \
		ROCI_CONN_##state, false                                                                               \
	}
#define PASSIVE(state)                                                                                                 \
	{                                                                                                              \
		ROCI_CONN_##state, true                                                                                \
	}
#define GETS(message)  ROCI_CM_ATTR_##message
#define NEXT(state)    ROCI_CONN_##state
#define EVENT(kind)    ROCI_CM_##kind
#define SENDS(message) ROCI_CM_ATTR_##message

/* Every other pair of state and message: same state, no event, no answer. */
static const struct reaction reactions[] = {
	{ACTIVE(REQ_SENT), GETS(REP), NEXT(REP_RECEIVED), EVENT(REP_RECEIVED), NO_MESSAGE},
	{ACTIVE(REQ_SENT), GETS(REJ), NEXT(CLOSED), EVENT(REJ_RECEIVED), NO_MESSAGE},
	{PASSIVE(REQ_WAITING), GETS(REJ), NEXT(CLOSED), NO_EVENT, NO_MESSAGE},
	{PASSIVE(REQ_WAITING), GETS(DREQ), NEXT(REQ_WAITING), NO_EVENT, SENDS(DREP)},
	{PASSIVE(REQ_RECEIVED), GETS(REQ), NEXT(REQ_RECEIVED), NO_EVENT, SENDS(MRA)},
	{PASSIVE(REQ_RECEIVED), GETS(REJ), NEXT(CLOSED), EVENT(REJ_RECEIVED), NO_MESSAGE},
	{PASSIVE(REQ_RECEIVED), GETS(DREQ), NEXT(REQ_RECEIVED), NO_EVENT, SENDS(DREP)},
	{PASSIVE(REP_SENT), GETS(REQ), NEXT(REP_SENT), NO_EVENT, SENDS(REP)},
	{PASSIVE(REP_SENT), GETS(RTU), NEXT(ESTABLISHED), EVENT(ESTABLISHED), NO_MESSAGE},
	{PASSIVE(REP_SENT), GETS(REJ), NEXT(CLOSED), EVENT(REJ_RECEIVED), NO_MESSAGE},
	{PASSIVE(REP_SENT), GETS(DREQ), NEXT(DREQ_RECEIVED), EVENT(DREQ_RECEIVED), NO_MESSAGE},
	{ACTIVE(REP_RECEIVED), GETS(REP), NEXT(REP_RECEIVED), NO_EVENT, SENDS(MRA)},
	{ACTIVE(REP_RECEIVED), GETS(REJ), NEXT(CLOSED), EVENT(REJ_RECEIVED), NO_MESSAGE},
	{ACTIVE(REP_RECEIVED), GETS(DREQ), NEXT(DREQ_RECEIVED), EVENT(DREQ_RECEIVED), NO_MESSAGE},
	{ACTIVE(ESTABLISHED), GETS(REP), NEXT(ESTABLISHED), NO_EVENT, SENDS(RTU)},
	{ACTIVE(ESTABLISHED), GETS(REJ), NEXT(TIMEWAIT), EVENT(REJ_RECEIVED), NO_MESSAGE},
	{ACTIVE(ESTABLISHED), GETS(DREQ), NEXT(DREQ_RECEIVED), EVENT(DREQ_RECEIVED), NO_MESSAGE},
	{PASSIVE(ESTABLISHED), GETS(REQ), NEXT(ESTABLISHED), NO_EVENT, SENDS(REP)},
	{PASSIVE(ESTABLISHED), GETS(REJ), NEXT(TIMEWAIT), EVENT(REJ_RECEIVED), NO_MESSAGE},
	{PASSIVE(ESTABLISHED), GETS(DREQ), NEXT(DREQ_RECEIVED), EVENT(DREQ_RECEIVED), NO_MESSAGE},
	{ACTIVE(DREQ_SENT), GETS(REJ), NEXT(TIMEWAIT), EVENT(DREP_RECEIVED), NO_MESSAGE},
	{ACTIVE(DREQ_SENT), GETS(DREQ), NEXT(TIMEWAIT), EVENT(DREP_RECEIVED), SENDS(DREP)},
	{ACTIVE(DREQ_SENT), GETS(DREP), NEXT(TIMEWAIT), EVENT(DREP_RECEIVED), NO_MESSAGE},
	{PASSIVE(TIMEWAIT), GETS(REQ), NEXT(TIMEWAIT), NO_EVENT, SENDS(REJ)},
	{PASSIVE(TIMEWAIT), GETS(DREQ), NEXT(TIMEWAIT), NO_EVENT, SENDS(DREP)},
	{PASSIVE(CLOSED), GETS(REQ), NEXT(CLOSED), NO_EVENT, SENDS(REJ)},
	{PASSIVE(CLOSED), GETS(REP), NEXT(CLOSED), NO_EVENT, SENDS(REJ)},
	{PASSIVE(CLOSED), GETS(RTU), NEXT(CLOSED), NO_EVENT, SENDS(REJ)},
	{PASSIVE(CLOSED), GETS(DREQ), NEXT(CLOSED), NO_EVENT, SENDS(DREP)},
};

static struct reaction expected(struct place place, enum roci_cm_attribute message)
{
	for (unsigned i = 0; i < sizeof(reactions) / sizeof(*reactions); i++)
		if (reactions[i].place.state == place.state && reactions[i].place.passive == place.passive &&
		    reactions[i].message == message)
			return reactions[i];
	return (struct reaction){place, message, place.state, NO_EVENT, NO_MESSAGE};
}

/* Goes through the states until one side is in the one that is asked for. What it sends from then on is lost. */
static struct roci_conn *reach(struct pair *p, struct place place)
{
	const struct roci_cm_bytes none = {0};
	struct roci_conn *active, *passive;

	if (place.state == ROCI_CONN_REQ_WAITING) { /* another request has the only place of the backlog */
		pair_connect(p, 0x900);
		pair_carry(p);
	}
	active = pair_connect(p, 0x1000);
	if (place.state == ROCI_CONN_REQ_SENT)
		return active;
	pair_carry(p);
	passive = roci_container_of(p->b->exchanges.prev, struct roci_exchange, all)->conn;
	if (place.state == ROCI_CONN_CLOSED)
		roci_conn_reject(passive, p->now, ROCI_REJ_CONSUMER_DEFINED, none, none);
	if (place.state == ROCI_CONN_REQ_WAITING || place.state == ROCI_CONN_REQ_RECEIVED ||
	    place.state == ROCI_CONN_CLOSED)
		return passive;
	pair_accept(p, passive, 0x2000);
	if (place.state == ROCI_CONN_REP_SENT)
		return passive;
	pair_carry(p);
	if (place.state == ROCI_CONN_REP_RECEIVED)
		return active;
	roci_conn_establish(active, p->now, none);
	pair_carry(p);
	if (place.state == ROCI_CONN_ESTABLISHED)
		return place.passive ? passive : active;
	roci_conn_disconnect(place.state == ROCI_CONN_DREQ_RECEIVED ? passive : active, p->now, none);
	if (place.state == ROCI_CONN_DREQ_SENT)
		return active;
	pair_carry(p);
	if (place.state == ROCI_CONN_DREQ_RECEIVED)
		return active;
	roci_conn_disconnect(passive, p->now, none);
	return passive;
}

/* The message as the peer of this connection would send it. */
static void receive(struct pair *p, struct roci_conn *conn, enum roci_cm_attribute message)
{
	struct roci_cm_msg msg = {
		.attribute = (uint16_t)message,
		.tid = conn->tid,
		.local_id = conn->info.remote_comm_id ? conn->info.remote_comm_id : 0x77,
		.remote_id = message == ROCI_CM_ATTR_REQ ? 0 : conn->info.local_comm_id,
		.qpn = message == ROCI_CM_ATTR_DREQ ? conn->info.local_qpn : 0x2000,
	};
	uint8_t mad[ROCI_CM_MAD_BYTES];

	roci_cm_msg_build(&msg, mad);
	roci_cm_rx(conn->x.cm, p->now, mad, conn->x.remote_gid, conn->x.local_gid, 7);
	pair_drain(p, conn->x.cm);
}

static void check(struct place place, enum roci_cm_attribute message)
{
	struct reaction right = expected(place, message);
	unsigned event, answer = NO_MESSAGE;
	struct roci_conn *conn;
	struct pair p;

	pair_open(&p, 1);
	conn = reach(&p, place);
	p.lose = true;
	pair_carry(&p);
	pair_clear(&p);
	assert_int_equal(conn->state, place.state);
	receive(&p, conn, message);
	pair_carry(&p);
	assert_true(p.event_count <= 1);
	event = p.event_count ? p.events[0].kind : NO_EVENT;
	for (unsigned attribute = 0; attribute < sizeof(p.sent) / sizeof(*p.sent); attribute++)
		if (p.sent[attribute])
			answer = attribute;
	if (conn->state != right.next || event != right.event || answer != right.answer)
		fail_msg("%s in state %u of the %s side: state %u, %s, answer %s", cm_message_name(message),
			 place.state, place.passive ? "passive" : "active", conn->state, cm_event_name(event),
			 cm_message_name(answer));
	roci_cm_destroy(p.a);
	roci_cm_destroy(p.b);
}

static void every_message_in_every_state(void **state)
{
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		for (unsigned message = ROCI_CM_ATTR_REQ; message <= ROCI_CM_ATTR_DREP; message++)
			if (places[i].passive || message != ROCI_CM_ATTR_REQ) /* a REQ is a passive side's */
				check(places[i], message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_in_every_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
