/* SPDX-License-Identifier: BSD-2-Clause */
#include "ladder/ladder.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "capture/fields.h"
#include "ladder/store.h"

/* ---- memory ---- */

bool ladder_grow(struct ladder *l, void *items, size_t count, size_t *room, size_t size)
{
	void *old, *more;
	size_t wanted = *room ? *room * 2 : 64;

	if (count < *room)
		return true;
	memcpy(&old, items, sizeof(old));
	more = l->out_of_memory ? NULL : reallocarray(old, wanted, size);
	if (!more) {
		l->out_of_memory = true;
		return false;
	}
	memcpy(items, &more, sizeof(more));
	*room = wanted;
	return true;
}

ladder_text_t ladder_print(struct ladder *l, const char *format, ...)
{
	ladder_text_t at = l->text_len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len <= 0)
		return 0;
	while (l->text_len + (size_t)len + 1 > l->text_room)
		if (!ladder_grow(l, &l->texts, l->text_room, &l->text_room, 1))
			return 0;
	va_start(args, format);
	vsnprintf(l->texts + at, (size_t)len + 1, format, args);
	va_end(args);
	l->text_len += (size_t)len + 1;
	return at;
}

struct ladder *ladder_create(const struct ladder_options *options)
{
	struct ladder *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->options = *options;
	l->start_ns = LADDER_NEVER;
	if (!ladder_grow(l, &l->texts, 0, &l->text_room, 1) || !LADDER_GROW(l, explanations, explanation)) {
		ladder_destroy(l);
		return NULL;
	}
	l->texts[l->text_len++] = 0;
	l->explanations[l->explanation_count++] = 0;
	return l;
}

void ladder_destroy(struct ladder *l)
{
	free(l->packets);
	free(l->events);
	free(l->messages);
	free(l->flows);
	free(l->conversations);
	free(l->lines);
	free(l->processes);
	free(l->explanations);
	free(l->lost);
	free(l->texts);
	free(l->packet_of_number);
	free(l);
}

/* ---- packets ---- */

static struct ladder_conversation *conversation(struct ladder *l, uint32_t number)
{
	while (l->conversation_count < number) {
		if (!LADDER_GROW(l, conversations, conversation))
			return NULL;
		l->conversations[l->conversation_count++] = (struct ladder_conversation){.lines = {-1, -1}};
	}
	return &l->conversations[number - 1];
}

static int flow_of(struct ladder *l, const struct capture_event *e)
{
	int c = (int)e->conversation - 1, end = (int)e->end;

	for (size_t i = l->flow_count; i-- > 0 && l->flow_count - i < 64;) { /* the last ones, most likely */
		const struct ladder_flow *f = &l->flows[i];

		if (f->conversation == c && f->end == end &&
		    !memcmp(&f->addresses, &e->frame->flow, sizeof(f->addresses)))
			return (int)i;
	}
	if (!LADDER_GROW(l, flows, flow))
		return -1;
	l->flows[l->flow_count] = (struct ladder_flow){.conversation = c, .end = end, .addresses = e->frame->flow};
	return (int)l->flow_count++;
}

static int message_of(struct ladder *l, const struct capture_event *e)
{
	const struct capture_message *m = &e->message;
	bool response = e->packet.op && e->packet.op->response;

	if (!m->id)
		return -1;
	for (size_t i = l->message_count; i-- > 0 && l->messages[i].id >= m->id;) { /* they are in order */
		if (l->messages[i].id != m->id)
			continue;
		if (m->bytes > l->messages[i].bytes)
			l->messages[i].bytes = m->bytes;
		return (int)i;
	}
	if (!LADDER_GROW(l, messages, message))
		return -1;
	l->messages[l->message_count] = (struct ladder_message){.id = m->id,
								.bytes = m->bytes,
								.kind = m->kind,
								.conversation = (int)e->conversation - 1,
								.end = (int)(response ? !e->end : e->end),
								.post = -1,
								.completion = -1,
								.receive = -1};
	return (int)l->message_count++;
}

static unsigned flags_of(const struct capture_event *e)
{
	static const struct {
		unsigned from, to;
	} map[] = {
		{CAPTURE_SENT_AGAIN, LADDER_AGAIN},
		{CAPTURE_DUPLICATE, LADDER_DUPLICATE},
		{CAPTURE_OUT_OF_ORDER, LADDER_OUT_OF_ORDER},
		{CAPTURE_LATE, LADDER_LATE},
		{CAPTURE_NAK, LADDER_NAK},
		{CAPTURE_RNR, LADDER_RNR},
		{CAPTURE_BAD_ICRC, LADDER_BAD_ICRC},
		{CAPTURE_REJECT, LADDER_REJECT},
		{CAPTURE_CONGESTED, LADDER_CONGESTED},
		{CAPTURE_MALFORMED, LADDER_MALFORMED},
	};
	unsigned flags = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		flags |= e->flags & map[i].from ? map[i].to : 0;
	if (e->sort == CAPTURE_SORT_CM)
		flags |= LADDER_CM;
	if (e->packet.op && e->packet.op->kind == ROCI_KIND_ACK)
		flags |= LADDER_ACK;
	return flags;
}

struct field_text {
	char text[1024];
	size_t len;
};

/* Keeps the fields that the page does not know from elsewhere. */
static void add_field(void *context, const struct capture_field *field)
{
	static const char *const known[] = {"eth", "ethernet", "vlan",    "ip",    "udp",
					    "bth", "icrc",     "payload", "frame", "meaning"};
	struct field_text *to = context;
	char value[160], *c;
	int n;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(field->group, known[i]))
			return;
	capture_field_print(field, value, sizeof(value));
	for (c = value; *c; c++)
		if (*c == ';' || *c == '=')
			*c = ',';
	n = snprintf(to->text + to->len, sizeof(to->text) - to->len, "%s%s %s=%s", to->len ? ";" : "", field->group,
		     field->name, value);
	if (n > 0 && (size_t)n < sizeof(to->text) - to->len)
		to->len += (size_t)n;
	else
		to->text[to->len] = 0;
}

static uint32_t queue_option(const struct capture_record *record)
{
	struct capture_option option;
	uint32_t at = 0, value;

	while (capture_option_next(record, &at, &option)) {
		if (option.code != 6 || option.len != sizeof(value))
			continue;
		memcpy(&value, option.bytes, sizeof(value));
		return record->swapped ? __builtin_bswap32(value) : value;
	}
	return 0;
}

/* The process of a packet: epb_queue, where the capture is one of ours and names its processes. */
static uint32_t pid_of(const struct ladder *l, const struct capture_record *record)
{
	uint32_t queue = l->process_count ? queue_option(record) : 0;

	for (size_t i = 0; queue && i < l->process_count; i++)
		if (l->processes[i].pid == queue)
			return queue;
	return 0;
}

static const struct explanation *explanation_of(const struct capture_event *e)
{
	if (e->flags & (CAPTURE_NAK | CAPTURE_RNR)) {
		unsigned code = e->packet.syndrome;

		return explain_code(EXPLAIN_NAK, (int)(code & ROCI_AETH_TYPE_MASK) == ROCI_AETH_RNR_NAK
							 ? ROCI_AETH_RNR_NAK
							 : (int)code);
	}
	return e->sort == CAPTURE_SORT_CM && e->cm && e->flags & CAPTURE_REJECT && e->cm->attribute == ROCI_CM_ATTR_REJ
		       ? explain_code(EXPLAIN_CM_REJECT, e->cm->reason)
		       : NULL;
}

static void remember_number(struct ladder *l, uint64_t number, int packet)
{
	while (l->numbers <= number && number < UINT32_MAX) {
		if (!ladder_grow(l, &l->packet_of_number, l->numbers, &l->number_room, sizeof(*l->packet_of_number)))
			return;
		l->packet_of_number[l->numbers++] = -1;
	}
	if (number < l->numbers && l->packet_of_number[number] < 0)
		l->packet_of_number[number] = packet;
}

/* The packet that left in the frame of that number: a frame may have several, and they follow each other. */
static struct ladder_packet *packet_that_left(struct ladder *l, const struct capture_event *e)
{
	int first = e->sent_number < l->numbers ? l->packet_of_number[e->sent_number] : -1;

	for (size_t i = (size_t)first; first >= 0 && i < l->packet_count; i++) {
		if (l->packets[i].number != e->sent_number)
			break;
		if (l->packets[i].psn == e->packet.psn && l->packets[i].opcode == e->packet.opcode)
			return &l->packets[i];
	}
	return NULL;
}

/* A packet that left was taken already: now it arrives. False: it was left out. */
static bool arrives(struct ladder *l, const struct capture_event *e, uint32_t pid)
{
	struct ladder_packet *p = packet_that_left(l, e);

	if (!p)
		return false;
	p->arrived_ns = e->record->time_ns;
	p->arrived_number = e->record->number;
	p->to_pid = pid;
	p->flags |= flags_of(e);
	if (pid && l->conversations[p->conversation].pids[!p->end] == 0)
		l->conversations[p->conversation].pids[!p->end] = pid;
	return true;
}

static void fill_packet(struct ladder *l, struct ladder_packet *p, const struct capture_event *e)
{
	char meaning[CAPTURE_MEANING_CHARS];
	struct field_text fields = {.len = 0};
	uint32_t there = e->sort == CAPTURE_SORT_CM ? 0 : capture_payload(e);

	p->meaning = ladder_print(l, "%s", capture_meaning(e, meaning));
	fields.text[0] = 0;
	capture_fields(e, add_field, &fields);
	p->fields = ladder_print(l, "%s", fields.text);
	p->psn = e->packet.psn;
	p->qpn = e->packet.dest_qpn;
	p->bytes = e->packet.payload_len;
	p->length = e->frame->original_len;
	p->pkey = e->packet.pkey;
	p->opcode = e->packet.opcode;
	p->bits = (uint8_t)(e->packet.ack_req | e->packet.solicited << 1 | e->packet.mig_req << 2 |
			    e->packet.fecn << 3 | e->packet.becn << 4);
	p->icrc = (uint8_t)e->icrc;
	p->payload_len = (uint8_t)(there < LADDER_PAYLOAD_BYTES ? there : LADDER_PAYLOAD_BYTES);
	if (p->payload_len)
		memcpy(p->payload, e->packet.payload, p->payload_len);
}

static void add_packet(struct ladder *l, const struct capture_event *e, uint32_t pid)
{
	struct ladder_conversation *c = conversation(l, e->conversation);
	bool inbound = e->record->direction == CAPTURE_INBOUND;
	struct ladder_packet p = {.sent_ns = e->record->time_ns,
				  .arrived_ns = LADDER_NEVER,
				  .number = e->record->number,
				  .conversation = (int)e->conversation - 1,
				  .end = (int)e->end,
				  .flags = flags_of(e),
				  .from_pid = inbound ? 0 : pid,
				  .to_pid = inbound ? pid : 0,
				  .cm_id = e->sort == CAPTURE_SORT_CM && e->cm ? e->cm->local_id : 0};

	if (!c || !LADDER_GROW(l, packets, packet))
		return;
	c->cm = c->cm || e->packet.dest_qpn == 1;
	if (pid && !c->pids[inbound ? !e->end : e->end])
		c->pids[inbound ? !e->end : e->end] = pid;
	p.order = p.number;
	p.flow = flow_of(l, e);
	p.message = message_of(l, e);
	p.explanation = ladder_explain(l, explanation_of(e));
	fill_packet(l, &p, e);
	if (l->out_of_memory)
		return;
	remember_number(l, p.number, (int)l->packet_count);
	l->packets[l->packet_count++] = p;
	if (p.sent_ns < l->start_ns)
		l->start_ns = p.sent_ns;
}

void ladder_take_packet(struct ladder *l, const struct capture_event *e)
{
	uint32_t pid = pid_of(l, e->record);

	if (!e->conversation || (e->sort != CAPTURE_SORT_ROCE && e->sort != CAPTURE_SORT_CM)) {
		l->no_rdma++;
		return;
	}
	if (e->sent_number && arrives(l, e, pid))
		return;
	if (e->conversation > LADDER_PAIRS_MAX)
		l->crowd++;
	else if (l->packet_count >= l->options.max_packets)
		l->left_out++;
	else
		add_packet(l, e, pid);
}

/* ---- records ---- */

static void add_event(struct ladder *l, const struct roci_record *r, enum ladder_event_kind kind)
{
	if (!LADDER_GROW(l, events, event))
		return;
	l->events[l->event_count] = (struct ladder_event){.record = *r,
							  .kind = kind,
							  .end = -1,
							  .conversation = -1,
							  .count = 1,
							  .last_wr_id = r->wr_id,
							  .order = l->event_count};
	l->event_count++;
	if (r->time_ns < l->start_ns)
		l->start_ns = r->time_ns;
}

void ladder_take_record(struct ladder *l, const struct roci_record *r)
{
	if (l->left_out)
		return; /* the picture has ended */
	switch (r->kind) {
	case ROCI_RECORD_PROCESS:
		if (LADDER_GROW(l, processes, process))
			l->processes[l->process_count++] = *r;
		return;
	case ROCI_RECORD_POST_SEND: add_event(l, r, LADDER_POST_SEND); return;
	case ROCI_RECORD_POST_RECV:
	case ROCI_RECORD_POST_SRQ: add_event(l, r, LADDER_POST_RECV); return;
	case ROCI_RECORD_COMPLETION: add_event(l, r, LADDER_COMPLETION); return;
	case ROCI_RECORD_QP_STATE: add_event(l, r, LADDER_STATE); return;
	case ROCI_RECORD_CM_EVENT: add_event(l, r, LADDER_CONNECTION); return;
	case ROCI_RECORD_FAULT:
		if (r->status != ROCI_RECORD_LOST)
			add_event(l, r, LADDER_FAULT);
		else if (LADDER_GROW(l, lost, lost))
			l->lost[l->lost_count++] = *r;
		return;
	default: return;
	}
}

/* ---- the end ---- */

static void take_conversation(void *context, const struct capture_conversation *about)
{
	struct ladder *l = context;

	if (about->number && about->number <= l->conversation_count)
		l->conversations[about->number - 1].about = *about;
}

static int by_time(const void *a, const void *b)
{
	const struct ladder_event *x = a, *y = b;

	if (x->record.time_ns != y->record.time_ns)
		return x->record.time_ns < y->record.time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int ladder_finish(struct ladder *l, const struct capture_tracker *tracker)
{
	if (l->out_of_memory)
		return -ENOMEM;
	capture_tracker_each(tracker, take_conversation, l);
	/* Records of two processes come in any order. */
	if (l->event_count)
		qsort(l->events, l->event_count, sizeof(*l->events), by_time);
	ladder_find_ends(l);
	ladder_find_links(l);
	ladder_find_lost(l);
	if (l->start_ns == LADDER_NEVER)
		l->start_ns = 0;
	return l->out_of_memory ? -ENOMEM : 0;
}
