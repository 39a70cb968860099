/* SPDX-License-Identifier: BSD-2-Clause */
/* roci ping --op all: every operation on every type of QP, connected and waited for in both ways, as a table. */
#include <stdio.h>
#include <string.h>

#include "explain_say.h"
#include "json_line.h"
#include "ping.h"
#include "text.h"
#include "tour/stop.h"

#define DEFAULT_COUNT 3
#define REASONS       (TOUR_OPS * TOUR_QPS * TOUR_WAYS)

enum outcome { OUTCOME_NONE, OUTCOME_GOOD, OUTCOME_BAD };

/* A reason, and the combinations that it keeps from being. */
struct reason {
	char text[160];
	char what[200];
};

struct table {
	const struct ping *ping;
	uint32_t near_caps, far_caps; /* all until they are known */
	char near_name[64], far_name[64];
	enum outcome cells[TOUR_OPS][TOUR_QPS][TOUR_WAYS][TOUR_WAITS];
	struct reason reasons[REASONS];
	unsigned reason_count;
	struct reason failed[REASONS]; /* of those that should be */
	unsigned failed_count, good_count;
};

/* Adds "send on ud by cm" to the list of a reason. */
static void add_reason(struct reason *list, unsigned *count, const char *text, const char *what)
{
	struct reason *r = NULL;
	size_t len;

	for (unsigned i = 0; i < *count; i++) {
		if (!strcmp(list[i].text, text))
			r = &list[i];
	}
	if (!r) {
		if (*count == REASONS)
			return;
		r = &list[(*count)++];
		*r = (struct reason){0};
		snprintf(r->text, sizeof(r->text), "%s", text);
	}
	len = strlen(r->what);
	if (len + strlen(what) + 3 < sizeof(r->what) && !strstr(r->what, what))
		snprintf(r->what + len, sizeof(r->what) - len, "%s%s", len ? ", " : "", what);
}

static json_t *plan_json(const struct tour_plan *plan)
{
	json_t *object = json_line("combination");

	json_object_set_new(object, "op", json_string(tour_op_names[plan->op]));
	json_object_set_new(object, "qp", json_string(tour_qp_names[plan->qp]));
	json_object_set_new(object, "connect", json_string(tour_way_names[plan->way]));
	json_object_set_new(object, "wait", json_string(tour_wait_names[plan->wait]));
	return object;
}

static void impossible(struct table *t, const struct tour_plan *plan, struct tour_refusal r)
{
	char text[160], what[40];

	snprintf(text, sizeof(text), "%s%s%s",
		 r.whose == TOUR_NEAR_DEVICE  ? t->near_name
		 : r.whose == TOUR_FAR_DEVICE ? t->far_name
					      : "",
		 r.whose == TOUR_BY_STANDARD ? "" : " ", r.reason);
	snprintf(what, sizeof(what), "%s on %s", tour_op_names[plan->op], tour_qp_names[plan->qp]);
	if (t->ping->choices->json) {
		json_t *object = plan_json(plan);
		json_object_set_new(object, "possible", json_false());
		json_object_set_new(object, "reason", json_string(text));
		json_line_print(object, stdout);
	}
	add_reason(t->reasons, &t->reason_count, text, what);
}

static void add_failure(struct table *t, const struct failure *failure, const char *what)
{
	const struct explanation *e = explain_of_failure(failure);
	char text[160], word[EXPLAIN_WORD_CHARS];

	if (e)
		snprintf(text, sizeof(text), "%.80s (`roci explain %s`)", failure->text, explain_word(e, word));
	add_reason(t->failed, &t->failed_count, e ? text : failure->text, what);
}

static void done(struct table *t, const struct tour_plan *plan, const struct failure *failure, uint64_t ns)
{
	bool good = !*failure->text;
	char what[60];

	t->cells[plan->op][plan->qp][plan->way][plan->wait] = good ? OUTCOME_GOOD : OUTCOME_BAD;
	if (good)
		t->good_count++;
	snprintf(what, sizeof(what), "%s on %s by %s, %s", tour_op_names[plan->op], tour_qp_names[plan->qp],
		 tour_way_names[plan->way], tour_wait_names[plan->wait]);
	if (!good)
		add_failure(t, failure, what);
	if (!t->ping->choices->json)
		return;
	json_t *object = plan_json(plan);
	json_object_set_new(object, "possible", json_true());
	json_object_set_new(object, "good", json_boolean(good));
	if (good)
		json_object_set_new(object, "ns", json_integer((json_int_t)ns));
	else
		ping_put_failure(object, failure);
	json_line_print(object, stdout);
}

/* Learns what the two devices can do from a connection, or from its refusal. */
static void learn(struct table *t, const struct dial *dial)
{
	if (dial->device) {
		snprintf(t->near_name, sizeof(t->near_name), "%s here", dial->device);
		t->near_caps = dial->caps | (dial->caps ? TOUR_CAP_CM_UC : TOUR_CAPS_ALL);
	}
	if (dial->offer.caps && dial->offer.caps != TOUR_CAPS_ALL) {
		snprintf(t->far_name, sizeof(t->far_name), "%s there", dial->offer.device);
		t->far_caps = dial->offer.caps;
	}
}

/* Connects, and does some operations. */
static void attempt(struct table *t, const struct tour_plan *plan)
{
	uint64_t count = t->ping->choices->count ? t->ping->choices->count : DEFAULT_COUNT, best = UINT64_MAX;
	struct near_result result = {.good = true};
	struct tour_refusal refusal;
	struct near *near;
	int err = near_open(&near, &t->ping->target, plan, &result.failure);

	if (near)
		learn(t, near_dial(near));
	for (uint32_t seq = 1; !err && result.good && seq <= count && !tour_stopped(); seq++) {
		near_run(near, seq, &result);
		if (result.good && result.ns < best)
			best = result.ns;
	}
	near_close(near);
	if (tour_stopped())
		return;
	refusal = tour_refuse(plan->op, plan->qp, plan->way, t->near_caps, t->far_caps);
	if (err && refusal.reason) {
		impossible(t, plan, refusal);
		return;
	}
	if (!err && result.good)
		result.failure.text[0] = '\0';
	done(t, plan, &result.failure, best);
}

/* Whether the options ask for this, or for all. */
static bool asked(unsigned choice, unsigned value)
{
	return choice == PING_NOT_GIVEN || choice == value;
}

static void try_combination(struct table *t, enum tour_op op, enum tour_qp qp, enum tour_way way, enum tour_wait wait)
{
	const struct ping_choices *c = t->ping->choices;
	struct tour_plan plan = ping_plan(c, op, qp, way, wait);
	struct tour_refusal refusal = tour_refuse(op, qp, way, t->near_caps, t->far_caps);

	if (!asked(c->qp, qp) || !asked(c->connect, way) || !asked(c->wait, wait))
		return;
	if (refusal.reason)
		impossible(t, &plan, refusal);
	else
		attempt(t, &plan);
}

/* ---- the table ---- */

static const char *tick(enum outcome outcome)
{
	bool utf8 = text_has_utf8();

	switch (outcome) {
	case OUTCOME_GOOD: return utf8 ? "\xe2\x9c\x93" : "+";
	case OUTCOME_BAD: return utf8 ? "\xe2\x9c\x97" : "X";
	default: return "-";
	}
}

/* The columns are 5 characters wide for cm, and 9 for socket. */
static void print_head(const struct ping_choices *c)
{
	static const char *const types[] = {"RC", "UC", "UD"};
	int width = (asked(c->connect, TOUR_CM) ? 5 : 0) + (asked(c->connect, TOUR_SOCKET) ? 9 : 0), space = 16;

	for (unsigned qp = 0; qp < TOUR_QPS; qp++) {
		if (!asked(c->qp, qp))
			continue;
		printf("%*s%s", space, "", types[qp]);
		space = width - 2;
	}
	putchar('\n');
	space = 16;
	for (unsigned i = 0; i < TOUR_QPS * TOUR_WAYS; i++) {
		if (!asked(c->qp, i / TOUR_WAYS) || !asked(c->connect, i % TOUR_WAYS))
			continue;
		printf("%*s%s", space, "", tour_way_names[i % TOUR_WAYS]);
		space = 3;
	}
	putchar('\n');
}

static void print_cell(const struct ping_choices *c, const enum outcome cell[TOUR_WAITS])
{
	if (c->wait == PING_NOT_GIVEN)
		printf("%s %s", tick(cell[TOUR_POLL]), tick(cell[TOUR_EVENT]));
	else
		printf("%s  ", tick(cell[c->wait]));
}

static void print_row(const struct table *t, enum tour_op op)
{
	const struct ping_choices *c = t->ping->choices;
	const char *space = "  ";

	printf("%-14s", tour_op_names[op]);
	for (unsigned qp = 0; qp < TOUR_QPS; qp++) {
		for (unsigned way = 0; way < TOUR_WAYS; way++) {
			if (!asked(c->qp, qp) || !asked(c->connect, way))
				continue;
			fputs(space, stdout);
			print_cell(c, t->cells[op][qp][way]);
			space = way == TOUR_CM ? "  " : "      ";
		}
	}
	putchar('\n');
	fflush(stdout);
}

static void print_reasons(const char *head, const struct reason *list, unsigned count)
{
	if (count)
		printf("\n%s\n", head);
	for (unsigned i = 0; i < count; i++)
		printf("  %s:\n      %s\n", list[i].text, list[i].what);
}

static void print_notes(const struct ping_choices *c)
{
	putchar('\n');
	if (c->wait == PING_NOT_GIVEN)
		puts("The first tick is --wait poll, the second --wait event.");
	else
		printf("Each tick is --wait %s.\n", tour_wait_names[c->wait]);
	if (c->size != PING_NOT_GIVEN && c->size != TOUR_ATOMIC_BYTES)
		puts("cas, faa and atomic-write are on 8 bytes always, whatever --size says.");
}

int ping_all(const struct ping *ping)
{
	static struct table table;
	struct table *t = &table;
	bool people = !ping->choices->json;

	*t = (struct table){.ping = ping, .near_caps = TOUR_CAPS_ALL, .far_caps = TOUR_CAPS_ALL};
	if (people)
		print_head(ping->choices);
	for (int op = 0; op < TOUR_OPS && !tour_stopped(); op++) {
		for (int way = 0; way < TOUR_QPS * TOUR_WAYS * TOUR_WAITS && !tour_stopped(); way++)
			try_combination(t, (enum tour_op)op, (enum tour_qp)(way / (TOUR_WAYS * TOUR_WAITS)),
					(enum tour_way)(way / TOUR_WAITS % TOUR_WAYS),
					(enum tour_wait)(way % TOUR_WAITS));
		if (people && !tour_stopped())
			print_row(t, (enum tour_op)op);
	}
	if (people) {
		print_notes(ping->choices);
		print_reasons("Cannot be:", t->reasons, t->reason_count);
		print_reasons("Failed:", t->failed, t->failed_count);
	}
	return t->failed_count ? t->good_count ? PING_FAILED : PING_CANNOT : PING_GOOD;
}
