/* SPDX-License-Identifier: BSD-2-Clause */
/* roci ping --steps: the life of one operation at both ends. */
#include <stdio.h>
#include <string.h>

#include "json_line.h"
#include "ping.h"
#include "wire/plural.h"

enum where { NEAR, FAR };

struct line {
	unsigned step; /* 1 to 10 */
	enum where where;
	const char *what;
	const char *more; /* a line that explains it; or NULL */
	bool happens;     /* false: this step is not there for this operation */
	bool told;        /* false: nothing tells when */
	uint64_t ns;      /* CLOCK_REALTIME */
};

#define LINES_MAX 24

struct story {
	const struct ping *ping;
	const struct tour_plan *plan;
	const struct near_steps *steps;
	struct line lines[LINES_MAX];
	unsigned count;
	char out[160], in[160], woken[2][80];
};

static void add(struct story *s, unsigned step, enum where where, uint64_t ns, const char *what, const char *more)
{
	if (s->count < LINES_MAX)
		s->lines[s->count++] = (struct line){step, where, what, more, true, ns != 0, ns};
}

static void add_none(struct story *s, unsigned step, enum where where, const char *what)
{
	if (s->count < LINES_MAX)
		s->lines[s->count++] = (struct line){.step = step, .where = where, .what = what};
}

static bool two_sided(enum tour_op op)
{
	return op == TOUR_SEND || op == TOUR_SEND_IMM || op == TOUR_SEND_INV || op == TOUR_WRITE_IMM;
}

/* Steps 1 to 3: what the programs do before. */
static void prepare(struct story *s)
{
	const struct near_steps *t = s->steps;
	bool remote = s->plan->op != TOUR_SEND && s->plan->op != TOUR_SEND_IMM && s->plan->op != TOUR_SEND_INV;

	add(s, 1, FAR, t->far_ns[FAR_REGISTERED], "buffer registered",
	    remote ? "ibv_reg_mr(); its address and rkey went to the near end when the QPs were connected"
		   : "ibv_reg_mr(): from now on the device may use this memory");
	add(s, 1, NEAR, t->near_registered_ns, "buffer registered", NULL);
	if (two_sided(s->plan->op))
		add(s, 2, FAR, t->far_ns[FAR_RECEIVE_POSTED], "receive posted",
		    s->plan->op == TOUR_WRITE_IMM
			    ? "ibv_post_recv(); the immediate data will take it, the bytes go elsewhere"
			    : "ibv_post_recv(): it says where the next message goes");
	else
		add_none(s, 2, FAR, "no receive: the request itself names the memory, by address and rkey");
	add(s, 3, NEAR, t->posted_ns, "WQE posted", "ibv_post_send() puts the work request into the send queue");
}

static const char *at_the_far_device(enum tour_op op)
{
	switch (op) {
	case TOUR_WRITE: return "bytes placed in memory; no receive is consumed, and the program is not told";
	case TOUR_READ: return "bytes fetched from memory; no receive is consumed, and the program is not told";
	case TOUR_CAS: return "8 bytes compared and exchanged in one go; the program is not told";
	case TOUR_FAA: return "8 bytes added to in one go; the program is not told";
	case TOUR_ATOMIC_WRITE: return "8 bytes written in one go; the program is not told";
	case TOUR_FLUSH: return "bytes written before are visible to all readers now; the program is not told";
	case TOUR_WRITE_IMM: return "bytes placed in memory, and a receive consumed for the immediate data";
	case TOUR_SEND_INV: return "receive consumed, bytes placed in its buffer, the memory window's rkey invalidated";
	default: return "receive consumed: the device places the bytes in its buffer";
	}
}

static const char *response(enum tour_op op)
{
	switch (op) {
	case TOUR_READ: return "response out, with the bytes";
	case TOUR_CAS:
	case TOUR_FAA: return "response out, with the value that was there before";
	case TOUR_FLUSH:
	case TOUR_ATOMIC_WRITE: return "response out";
	default: return "acknowledgement out";
	}
}

/* Steps 4 to 8: what the devices do. */
static void transport(struct story *s)
{
	const struct near_steps *t = s->steps;
	const struct record_operation *p = &t->record;

	snprintf(s->out, sizeof(s->out), "%s%s%u packet%s", p->request_name, *p->request_name ? ", " : "",
		 p->request_packets, roci_plural(p->request_packets));
	snprintf(s->in, sizeof(s->in), "%s%s%u packet%s", p->response_name, *p->response_name ? ", " : "",
		 p->response_packets, roci_plural(p->response_packets));
	add(s, 4, NEAR, p->taken_ns, "WQE taken by the device", NULL);
	add(s, 5, NEAR, p->request_ns, "packet out", p->request_ns ? s->out : NULL);
	add(s, 6, FAR, t->far_ns[FAR_PACKET_IN], "packet in", "its ICRC, PSN and rights are checked");
	add(s, 7, FAR, t->far_ns[FAR_TAKEN], at_the_far_device(s->plan->op), NULL);
	if (s->plan->qp != TOUR_RC) {
		add_none(s, 8, FAR,
			 s->plan->qp == TOUR_UC ? "no acknowledgement: UC has none"
						: "no acknowledgement: UD has none");
		return;
	}
	add(s, 8, FAR, t->far_ns[FAR_RESPONSE_OUT], response(s->plan->op), NULL);
	add(s, 8, NEAR, p->response_ns, s->plan->op == TOUR_READ ? "response in" : "acknowledged: it has come",
	    p->response_ns ? s->in : NULL);
}

/* Step 9: the device's record tells. Elsewhere it is at most known when the completion channel woke somebody. */
static void add_cqe(struct story *s, enum where where, uint64_t recorded_ns, uint64_t woken_ns, const char *unknown)
{
	const char *woken = where == NEAR ? "its completion channel has woken the thread"
					  : "its completion channel has woken the program";
	char *more = s->woken[where];

	if (recorded_ns && woken_ns >= recorded_ns)
		snprintf(more, sizeof(s->woken[where]), "%s %.1f us later", woken,
			 (double)(woken_ns - recorded_ns) / 1e3);
	else if (!recorded_ns)
		snprintf(more, sizeof(s->woken[where]), "%s", woken_ns ? woken : unknown);
	add(s, 9, where, recorded_ns ? recorded_ns : woken_ns, "CQE in the completion queue", *more ? more : NULL);
}

/* Steps 9 and 10, and what follows. */
static void complete(struct story *s)
{
	const struct near_steps *t = s->steps;

	if (two_sided(s->plan->op)) {
		add_cqe(s, FAR, t->far_ns[FAR_CQE], t->far_ns[FAR_WOKEN],
			"the program was awake already: no event tells when");
		add(s, 10, FAR, t->far_ns[FAR_POLLED], "polled: ibv_poll_cq() has returned the receive's completion",
		    NULL);
	}
	add_cqe(s, NEAR, t->record.cqe_ns, t->woken_ns,
		s->plan->wait == TOUR_EVENT ? "the thread was awake already: no event tells when"
					    : "nothing tells when to a program that polls; --wait event does");
	add(s, 10, NEAR, t->completed_ns, "polled: ibv_poll_cq() has returned the request's completion",
	    s->plan->qp == TOUR_RC ? NULL : "on UC and UD it says only that the bytes have left");
	if (!t->answer_ns)
		return;
	add(s, 11, FAR, t->far_ns[FAR_ANSWERED],
	    two_sided(s->plan->op) ? "the program answers, by a SEND of its own"
				   : "asked by a SEND, the program looks at its memory, and answers by a SEND",
	    NULL);
	add(s, 11, NEAR, t->answer_ns, "the answer is here: this ends the time that is printed", NULL);
}

/* Where a line without a time belongs: WQE taken and CQE just before what follows them, others just after what they
 * follow. */
static uint64_t place(const struct story *s, unsigned i)
{
	const struct line *l = &s->lines[i];

	if (l->ns)
		return l->ns;
	if ((l->step == 4 || l->step == 9) && i + 1 < s->count && s->lines[i + 1].ns)
		return s->lines[i + 1].ns;
	return i ? place(s, i - 1) : 0;
}

/* The two ends run beside each other, so their steps are told in the order of their times. */
static void order(struct story *s)
{
	uint64_t places[LINES_MAX];

	for (unsigned i = 0; i < s->count; i++)
		places[i] = place(s, i);
	for (unsigned i = 1; i < s->count; i++) {
		struct line line = s->lines[i];
		uint64_t ns = places[i];
		unsigned at = i;
		for (; at && places[at - 1] > ns; at--) {
			s->lines[at] = s->lines[at - 1];
			places[at] = places[at - 1];
		}
		s->lines[at] = line;
		places[at] = ns;
	}
}

static void print_people(const struct story *s, uint32_t seq)
{
	static const char *const where[] = {"near", "far "};
	const struct near_steps *t = s->steps;

	printf("\n  steps of %s seq=%u; us from the post on\n", tour_op_title(s->plan->op), seq);
	for (unsigned i = 0; i < s->count; i++) {
		const struct line *l = &s->lines[i];
		if (l->told)
			printf("  %12.1f", ((double)l->ns - (double)t->posted_ns) / 1e3);
		else
			printf("  %12s", l->happens ? "?" : "-");
		if (l->step <= 10)
			printf("  %s  %2u  %s\n", where[l->where], l->step, l->what);
		else
			printf("  %s      %s\n", where[l->where], l->what);
		if (l->more)
			printf("%26s%s\n", "", l->more);
	}
	if (!t->near_recorded)
		printf("  ? at 4, 5, 8 and 9: only the embedded device records what it does (--device embedded), in "
		       "memory or a file\n");
	if (!t->far_recorded)
		printf("  ? at 6 to 9: the far end has no record; `roci serve --record` on an embedded device has\n");
	if (t->clocks_differ)
		printf("  the far end's times are estimates: two machines have two clocks, and both ways are taken to "
		       "be "
		       "equally long\n");
	putchar('\n');
	fflush(stdout);
}

static void print_json(const struct story *s, uint32_t seq)
{
	json_t *object = json_line("steps"), *list = json_array();

	json_object_set_new(object, "seq", json_integer(seq));
	json_object_set_new(object, "op", json_string(tour_op_names[s->plan->op]));
	json_object_set_new(object, "qp", json_string(tour_qp_names[s->plan->qp]));
	json_object_set_new(object, "near_recorded", json_boolean(s->steps->near_recorded));
	json_object_set_new(object, "far_recorded", json_boolean(s->steps->far_recorded));
	json_object_set_new(object, "clocks_differ", json_boolean(s->steps->clocks_differ));
	for (unsigned i = 0; i < s->count; i++) {
		const struct line *l = &s->lines[i];
		json_t *step = json_object();
		json_object_set_new(step, "step", json_integer(l->step));
		json_object_set_new(step, "end", json_string(l->where == NEAR ? "near" : "far"));
		json_object_set_new(step, "what", json_string(l->what));
		json_object_set_new(step, "happens", json_boolean(l->happens));
		if (l->told)
			json_object_set_new(step, "us", json_real(((double)l->ns - (double)s->steps->posted_ns) / 1e3));
		json_array_append_new(list, step);
	}
	json_object_set_new(object, "steps", list);
	json_line_print(object, stdout);
}

void ping_show_steps(const struct ping *ping, const struct tour_plan *plan, const struct dial *dial, uint32_t seq,
		     const struct near_steps *steps)
{
	struct story story = {.ping = ping, .plan = plan, .steps = steps};

	prepare(&story);
	transport(&story);
	complete(&story);
	order(&story);
	if (ping->choices->json)
		print_json(&story, seq);
	else
		print_people(&story, seq);
}
