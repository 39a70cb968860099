/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs came across: messages, reasons of rejects, events, and transitions of connections. `sim_cm
 * --covered` prints how often, and fails where something that can occur did not.
 */
#include "sim_cm.h"

#define MAX_CONNS 512 /* of a host, at a time */
#define REASONS   64
#define MESSAGES  (ROCI_CM_ATTR_APR - ROCI_CM_ATTR_REQ + 1)

static struct {
	uint64_t messages[MESSAGES], reasons[REASONS], events[ROCI_CM_EVENT_KINDS];
	uint64_t moves[ROCI_CONN_STATES][ROCI_CONN_STATES];
} covered;

/* The states of the connections when they were looked at last. */
static struct {
	uint32_t id;
	enum roci_conn_state state;
} known[HOSTS][MAX_CONNS];
static unsigned num_known[HOSTS];

void cover_forget(unsigned host)
{
	num_known[host] = 0;
}

static enum roci_conn_state state_before(unsigned host, uint32_t id)
{
	for (unsigned i = 0; i < num_known[host]; i++)
		if (known[host][i].id == id)
			return known[host][i].state;
	return ROCI_CONN_CLOSED;
}

void cover_states(unsigned host)
{
	struct roci_cm *cm = sim.hosts[host].cm;
	unsigned n = 0, old = num_known[host];
	uint32_t ids[MAX_CONNS];
	enum roci_conn_state states[MAX_CONNS];

	for (struct roci_list *l = cm ? cm->exchanges.next : NULL; l && l != &cm->exchanges && n < MAX_CONNS;
	     l = l->next) {
		const struct roci_exchange *x = roci_container_of(l, struct roci_exchange, all);

		if (!x->conn)
			continue;
		ids[n] = x->conn->info.local_comm_id;
		states[n] = x->conn->state;
		covered.moves[state_before(host, ids[n])][states[n]] += state_before(host, ids[n]) != states[n];
		n++;
	}
	/* Those that are gone were closed. */
	for (unsigned i = 0; cm && i < old; i++) {
		bool gone = true;

		for (unsigned k = 0; gone && k < n; k++)
			gone = ids[k] != known[host][i].id;
		covered.moves[known[host][i].state][ROCI_CONN_CLOSED] +=
			gone && known[host][i].state != ROCI_CONN_CLOSED;
	}
	for (unsigned i = 0; i < n; i++) {
		known[host][i].id = ids[i];
		known[host][i].state = states[i];
	}
	num_known[host] = n;
}

void cover_message(const struct roci_cm_tx *tx)
{
	struct roci_cm_msg msg;

	if (roci_cm_msg_parse(&msg, tx->mad) != ROCI_CM_PARSE_OK || msg.attribute < ROCI_CM_ATTR_REQ ||
	    msg.attribute > ROCI_CM_ATTR_APR)
		return;
	covered.messages[msg.attribute - ROCI_CM_ATTR_REQ]++;
	if (msg.attribute == ROCI_CM_ATTR_REJ && msg.reason < REASONS)
		covered.reasons[msg.reason]++;
}

void cover_event(enum roci_cm_event_kind kind)
{
	covered.events[kind]++;
}

/* ---- the report ---- */

static bool all_occurred;

static void count(uint64_t times, const char *what, const char *name)
{
	printf("  %12llu %s%s\n", (unsigned long long)times, what, name);
	all_occurred &= times != 0;
}

static const char *const states[ROCI_CONN_STATES] = {
	[ROCI_CONN_CLOSED] = "closed",
	[ROCI_CONN_REQ_SENT] = "REQ sent",
	[ROCI_CONN_REQ_WAITING] = "REQ waiting",
	[ROCI_CONN_REQ_RECEIVED] = "REQ received",
	[ROCI_CONN_REP_SENT] = "REP sent",
	[ROCI_CONN_REP_RECEIVED] = "REP received",
	[ROCI_CONN_ESTABLISHED] = "established",
	[ROCI_CONN_DREQ_SENT] = "DREQ sent",
	[ROCI_CONN_DREQ_RECEIVED] = "DREQ received",
	[ROCI_CONN_TIMEWAIT] = "TIMEWAIT",
};

#define BIT(state) (1u << ROCI_CONN_##state)

/* IBTA 12.9.7, figures 138 and 139; what is over is closed. */
static const unsigned next[ROCI_CONN_STATES] = {
	[ROCI_CONN_CLOSED] = BIT(REQ_SENT) | BIT(REQ_WAITING) | BIT(REQ_RECEIVED),
	[ROCI_CONN_REQ_SENT] = BIT(REP_RECEIVED) | BIT(CLOSED),
	[ROCI_CONN_REQ_WAITING] = BIT(REQ_RECEIVED) | BIT(CLOSED),
	[ROCI_CONN_REQ_RECEIVED] = BIT(REP_SENT) | BIT(CLOSED),
	[ROCI_CONN_REP_SENT] = BIT(ESTABLISHED) | BIT(DREQ_RECEIVED) | BIT(CLOSED),
	[ROCI_CONN_REP_RECEIVED] = BIT(ESTABLISHED) | BIT(DREQ_RECEIVED) | BIT(CLOSED),
	[ROCI_CONN_ESTABLISHED] = BIT(DREQ_SENT) | BIT(DREQ_RECEIVED) | BIT(TIMEWAIT),
	[ROCI_CONN_DREQ_SENT] = BIT(TIMEWAIT),
	[ROCI_CONN_DREQ_RECEIVED] = BIT(TIMEWAIT),
	[ROCI_CONN_TIMEWAIT] = BIT(CLOSED),
};

static void print_moves(void)
{
	for (unsigned i = 0; i < ROCI_CONN_STATES * ROCI_CONN_STATES; i++) {
		unsigned from = i / ROCI_CONN_STATES, to = i % ROCI_CONN_STATES;
		char name[64];

		snprintf(name, sizeof(name), "%s to %s", states[from], states[to]);
		if (next[from] & 1u << to)
			count(covered.moves[from][to], "", name);
		else if (covered.moves[from][to])
			printf("  %12llu %s (not expected)\n", (unsigned long long)covered.moves[from][to], name);
	}
}

bool cover_report(void)
{
	all_occurred = true;
	/* Nobody sends a LAP: alternate paths are not offered (IBTA 12.8). An APR answers one that damage made. */
	for (unsigned i = 0; i < ROCI_CM_ATTR_LAP - ROCI_CM_ATTR_REQ; i++)
		count(covered.messages[i], "", cm_message_name(ROCI_CM_ATTR_REQ + i));
	for (unsigned i = 0; i < REASONS; i++)
		if (covered.reasons[i])
			printf("  %12llu REJ for reason %u\n", (unsigned long long)covered.reasons[i], i);
	for (unsigned i = 0; i < ROCI_CM_EVENT_KINDS; i++)
		count(covered.events[i], "event: ", cm_event_name(i));
	print_moves();
	return all_occurred;
}
