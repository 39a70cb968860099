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
static struct roci_cm_msg from_peer(const struct roci_conn *conn, enum roci_cm_attribute message)
{
	return (struct roci_cm_msg){
		.attribute = (uint16_t)message,
		.tid = message == ROCI_CM_ATTR_DREP ? conn->dreq_tid : conn->tid,
		.local_id = conn->info.remote_comm_id ? conn->info.remote_comm_id : 0x77,
		.remote_id = message == ROCI_CM_ATTR_REQ ? 0 : conn->info.local_comm_id,
		.qpn = message == ROCI_CM_ATTR_DREQ ? conn->info.local_qpn : 0x2000,
		.about = message == ROCI_CM_ATTR_REJ ? ROCI_CM_ABOUT_OTHER : 0,
	};
}

static void receive(struct pair *p, struct roci_conn *conn, const struct roci_cm_msg *msg, const uint8_t sgid[16])
{
	uint8_t mad[ROCI_CM_MAD_BYTES];

	roci_cm_msg_build(msg, mad);
	roci_cm_rx(conn->x.cm, p->now, mad, sgid, conn->x.local_gid, 7);
	pair_drain(p, conn->x.cm);
}

/* A pair of which one side is in this state, and nothing is under way. */
static struct roci_conn *open_at(struct pair *p, struct place place)
{
	struct roci_conn *conn;

	pair_open(p, 1);
	conn = reach(p, place);
	p->lose = true;
	pair_carry(p);
	pair_clear(p);
	assert_int_equal(conn->state, place.state);
	return conn;
}

static void destroy(struct pair *p)
{
	roci_cm_destroy(p->a);
	roci_cm_destroy(p->b);
}

static void check(struct place place, enum roci_cm_attribute message)
{
	struct reaction right = expected(place, message);
	unsigned event, answer = NO_MESSAGE;
	struct roci_cm_msg msg;
	struct roci_conn *conn;
	struct pair p;

	conn = open_at(&p, place);
	msg = from_peer(conn, message);
	receive(&p, conn, &msg, conn->x.remote_gid);
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
	destroy(&p);
}

static void every_message_in_every_state(void **state)
{
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		for (unsigned message = ROCI_CM_ATTR_REQ; message <= ROCI_CM_ATTR_DREP; message++)
			if (places[i].passive || message != ROCI_CM_ATTR_REQ) /* a REQ is a passive side's */
				check(places[i], message);
}

/* ---- forged messages: what the connection must not believe ---- */

enum forgery {
	FORGED_SOURCE,     /* everything right, but from another address */
	FORGED_LOCAL_ID,   /* another sender's id */
	FORGED_REMOTE_ID,  /* another receiver's id */
	FORGED_TID,        /* not the TID of the REQ */
	FORGED_NO_SENDER,  /* REJ: local id 0, as of one who answers a REQ and has no connection */
	FORGED_NO_RECEIVER /* REJ: remote id 0, as of one who withdraws a REQ */
};
#define FORGERIES (FORGED_NO_RECEIVER + 1)

/* The REQ's exchange has its TID. The other messages name the connection by the ids alone. */
static bool has_req_tid(enum roci_cm_attribute message)
{
	return message == ROCI_CM_ATTR_REP || message == ROCI_CM_ATTR_REJ || message == ROCI_CM_ATTR_MRA;
}

/* True where nothing tells the message from a genuine one: the state knows no id of the peer yet, or the peer no id of
 * ours. */
static bool is_genuine(struct place place, enum roci_cm_attribute message, enum forgery forgery)
{
	bool rej = message == ROCI_CM_ATTR_REJ;

	switch (forgery) {
	case FORGED_LOCAL_ID: return place.state == ROCI_CONN_REQ_SENT;
	case FORGED_TID: return !has_req_tid(message);
	case FORGED_NO_SENDER: return !rej || place.state == ROCI_CONN_REQ_SENT;
	case FORGED_NO_RECEIVER:
		return !rej || place.state == ROCI_CONN_REQ_WAITING || place.state == ROCI_CONN_REQ_RECEIVED ||
		       place.state == ROCI_CONN_REP_SENT;
	default: return false;
	}
}

static void check_forgery(struct place place, enum roci_cm_attribute message, enum forgery forgery)
{
	static const uint8_t elsewhere[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 66};
	struct roci_cm_msg msg;
	struct roci_conn *conn;
	struct pair p;

	conn = open_at(&p, place);
	msg = from_peer(conn, message);
	switch (forgery) {
	case FORGED_SOURCE: break;
	case FORGED_LOCAL_ID: msg.local_id ^= 1; break;
	case FORGED_REMOTE_ID: msg.remote_id ^= 1; break;
	case FORGED_TID: msg.tid ^= 1; break;
	case FORGED_NO_SENDER: msg.local_id = 0; break;
	case FORGED_NO_RECEIVER: msg.remote_id = 0; break;
	}
	receive(&p, conn, &msg, forgery == FORGED_SOURCE ? elsewhere : conn->x.remote_gid);
	if (conn->state != place.state || p.event_count)
		fail_msg("forgery %u of %s in state %u of the %s side: state %u, %u events", forgery,
			 cm_message_name(message), place.state, place.passive ? "passive" : "active", conn->state,
			 p.event_count);
	destroy(&p);
}

static void no_forged_message_in_any_state(void **state)
{
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		for (unsigned message = ROCI_CM_ATTR_MRA; message <= ROCI_CM_ATTR_DREP; message++)
			for (unsigned forgery = 0; forgery < FORGERIES; forgery++)
				if (!is_genuine(places[i], message, forgery))
					check_forgery(places[i], message, forgery);
}

/* Once the REQ is answered, nobody rejects it any more. */
static void a_late_rej_of_the_req_ends_nothing(void **state)
{
	for (unsigned passive = 0; passive < 2; passive++) {
		struct roci_cm_msg rej;
		struct roci_conn *conn;
		struct pair p;

		conn = open_at(&p, (struct place){ROCI_CONN_ESTABLISHED, passive});
		rej = from_peer(conn, ROCI_CM_ATTR_REJ);
		rej.about = ROCI_CM_ABOUT_REQ;
		receive(&p, conn, &rej, conn->x.remote_gid);
		assert_int_equal(conn->state, ROCI_CONN_ESTABLISHED);
		assert_int_equal(p.event_count, 0);
		destroy(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_in_every_state),
		cmocka_unit_test(no_forged_message_in_any_state),
		cmocka_unit_test(a_late_rej_of_the_req_ends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
