/* SPDX-License-Identifier: BSD-2-Clause */
/* `roci dump --json`: an object a line. roci-dump(1) lists the members; they stay. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "capture/fields.h"
#include "dump.h"
#include "json_line.h"

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* ---- fields ---- */

static json_t *hex(const uint8_t *bytes, uint32_t len)
{
	char *text = malloc((size_t)len * 2 + 1);
	json_t *string;

	if (!text)
		return NULL;
	for (uint32_t i = 0; i < len; i++)
		snprintf(text + (size_t)i * 2, 3, "%02x", bytes[i]);
	string = json_stringn(text, (size_t)len * 2);
	free(text);
	return string;
}

static json_t *value_of(const struct capture_field *field)
{
	struct capture_field bare = *field;
	char text[64];

	bare.text = NULL;
	switch (field->kind) {
	case CAPTURE_FIELD_BOOL: return json_boolean(field->number);
	case CAPTURE_FIELD_BYTES: return hex(field->bytes, field->len);
	case CAPTURE_FIELD_ADDRESS:
	case CAPTURE_FIELD_MAC: return json_string(capture_field_print(&bare, text, sizeof(text)));
	case CAPTURE_FIELD_HEX:
		if (field->digits == 16) /* JSON's numbers are doubles for many readers */
			return json_string(capture_field_print(&bare, text, sizeof(text)));
		return number(field->number);
	default: return number(field->number);
	}
}

static void add_field(void *context, const struct capture_field *field)
{
	json_t *groups = context, *group = json_object_get(groups, field->group);

	if (!group) {
		group = json_object();
		json_object_set_new(groups, field->group, group);
	}
	json_object_set_new(group, field->name, value_of(field));
}

/* ---- a packet ---- */

static const char *const sorts[] = {
	[CAPTURE_SORT_ROCE] = "roce",   [CAPTURE_SORT_CM] = "cm",     [CAPTURE_SORT_NOT_UNDERSTOOD] = "not_understood",
	[CAPTURE_SORT_IWARP] = "iwarp", [CAPTURE_SORT_ICMP] = "icmp", [CAPTURE_SORT_FRAGMENT] = "fragment",
	[CAPTURE_SORT_OTHER] = "other",
};

static json_t *flags_of(unsigned flags)
{
	static const char *const names[] = {"sent_again", "duplicate",     "out_of_order", "late",      "after_nak",
					    "after_rnr",  "after_silence", "nak",          "rnr",       "bad_icrc",
					    "reject",     "cut",           "congested",    "malformed", "probe"};
	json_t *list = json_array();

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & 1u << i)
			json_array_append_new(list, json_string(names[i]));
	return list;
}

static json_t *end_of(const uint8_t gid[16], bool qpn_known, uint32_t qpn)
{
	char address[48];
	json_t *end = json_object();

	json_object_set_new(end, "address", json_string(dump_address(gid, address)));
	json_object_set_new(end, "qpn", qpn_known ? number(qpn) : json_null());
	return end;
}

static void add_message(json_t *object, const struct capture_message *m)
{
	json_t *message = json_object();

	json_object_set_new(message, "id", number(m->id));
	json_object_set_new(message, "packet", number(m->packet));
	json_object_set_new(message, "packets", m->packets ? number(m->packets) : json_null());
	json_object_set_new(message, "bytes", m->bytes || m->packets ? number(m->bytes) : json_null());
	json_object_set_new(object, "message", message);
}

static void add_if(json_t *object, const char *name, uint64_t value)
{
	if (value)
		json_object_set_new(object, name, number(value));
}

static void add_roce(json_t *object, const struct capture_event *e)
{
	static const char *const icrcs[] = {
		[CAPTURE_ICRC_UNKNOWN] = "unknown",
		[CAPTURE_ICRC_RIGHT] = "right",
		[CAPTURE_ICRC_WRONG] = "wrong",
		[CAPTURE_ICRC_BEHIND_NAT] = "behind_nat",
	};

	json_object_set_new(object, "version", number(e->frame->protocol == CAPTURE_ROCE_V1 ? 1 : 2));
	json_object_set_new(object, "opcode", json_string(e->packet.op->name));
	json_object_set_new(object, "psn", number(e->packet.psn));
	json_object_set_new(object, "length", number(e->packet.payload_len));
	json_object_set_new(object, "icrc", json_string(icrcs[e->icrc]));
	add_if(object, "conversation", e->conversation);
	add_if(object, "merged", e->merged);
	if (e->message.id)
		add_message(object, &e->message);
	add_if(object, "missing", e->missing);
	if (e->missing)
		json_object_set_new(object, "expected_psn", number(e->expected_psn));
	add_if(object, "acknowledged", e->acknowledged);
	add_if(object, "round_trip_ns", e->round_trip_ns);
	add_if(object, "rnr_ns", e->rnr_ns);
	add_if(object, "waited_ns", e->waited_ns);
	add_if(object, "left_in", e->sent_number);
	add_if(object, "left_ns", e->sent_ns);
}

static json_t *comments_of(const struct capture_record *record)
{
	struct capture_option option;
	json_t *list = NULL;
	uint32_t at = 0;

	while (capture_option_next(record, &at, &option)) {
		if (option.code != CAPTURE_OPTION_COMMENT)
			continue;
		if (!list)
			list = json_array();
		json_array_append_new(list, json_line_text(option.bytes, option.len));
	}
	return list;
}

void dump_json(const struct capture_event *e)
{
	static const char *const directions[] = {
		[CAPTURE_PASSING] = "passing", [CAPTURE_INBOUND] = "in", [CAPTURE_OUTBOUND] = "out"};
	json_t *object = json_object(), *fields = json_object(), *comments = comments_of(e->record);
	char meaning[CAPTURE_MEANING_CHARS];
	bool roce = e->sort == CAPTURE_SORT_ROCE || e->sort == CAPTURE_SORT_CM;

	json_object_set_new(object, "number", number(e->record->number));
	json_object_set_new(object, "time_ns", number(e->record->time_ns));
	json_object_set_new(object, "direction", json_string(directions[e->record->direction]));
	json_object_set_new(object, "sort", json_string(sorts[e->sort]));
	if (e->frame->ip) {
		json_object_set_new(object, "src", end_of(e->frame->flow.src, e->src_qpn_known, e->src_qpn));
		json_object_set_new(object, "dst", end_of(e->frame->flow.dst, roce, roce ? e->packet.dest_qpn : 0));
	}
	if (roce)
		add_roce(object, e);
	json_object_set_new(object, "flags", flags_of(e->flags));
	json_object_set_new(object, "meaning", json_string(capture_meaning(e, meaning)));
	if (e->record->made_up)
		json_object_set_new(object, "made_up", json_true());
	if (comments)
		json_object_set_new(object, "comments", comments);
	capture_fields(e, add_field, fields);
	json_object_set_new(object, "fields", fields);
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

/* ---- a record ---- */

void dump_json_record(const struct roci_record *r)
{
	json_t *object = json_object(), *fields = json_object();
	struct capture_run run = {.count = 0};
	char meaning[CAPTURE_RECORD_CHARS];

	capture_run_add(&run, r);
	json_object_set_new(object, "sort", json_string("record"));
	json_object_set_new(object, "record", json_string(capture_record_word(r)));
	json_object_set_new(object, "time_ns", number(r->time_ns));
	json_object_set_new(object, "error", json_boolean(capture_record_is_error(r)));
	capture_run_meaning(&run, meaning);
	json_object_set_new(object, "meaning", json_line_text(meaning, strlen(meaning)));
	if (r->kind == ROCI_RECORD_PROCESS)
		json_object_set_new(object, "program", json_line_text(r->text, strlen(r->text)));
	capture_record_fields(r, add_field, fields);
	json_object_set_new(object, "fields", fields);
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

/* ---- a conversation ---- */

static json_t *round_trips_of(const struct capture_percentiles *p)
{
	json_t *object = json_object();

	json_object_set_new(object, "count", number(p->count));
	json_object_set_new(object, "least_ns", number(p->least));
	json_object_set_new(object, "p50_ns", number(capture_percentile(p, 50)));
	json_object_set_new(object, "p90_ns", number(capture_percentile(p, 90)));
	json_object_set_new(object, "p99_ns", number(capture_percentile(p, 99)));
	json_object_set_new(object, "most_ns", number(p->most));
	return object;
}

static json_t *half_of(const struct capture_conversation *c, unsigned i)
{
	const struct capture_end *end = &c->ends[i];
	json_t *object = end_of(end->gid, end->qpn_known, end->qpn);
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"packets", end->packets},
		{"bytes", end->bytes},
		{"messages", end->messages},
		{"sent_again", end->sent_again},
		{"duplicates", end->duplicates},
		{"out_of_order", end->out_of_order},
		{"late", end->late},
		{"acks", end->acks},
		{"naks", end->naks},
		{"rnrs", end->rnrs},
		{"cnps", end->cnps},
		{"bad_icrcs", end->bad_icrcs},
	};

	for (unsigned k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
		json_object_set_new(object, counts[k].name, number(counts[k].value));
	json_object_set_new(object, "round_trips", round_trips_of(&c->round_trips[i]));
	return object;
}

void dump_json_conversation(void *context, const struct capture_conversation *c)
{
	json_t *object = json_object(), *ends = json_array();

	json_object_set_new(object, "conversation", number(c->number));
	json_object_set_new(object, "transport",
			    json_string(c->transport == ROCI_TRANSPORT_RC   ? "RC"
					: c->transport == ROCI_TRANSPORT_UC ? "UC"
									    : "UD"));
	json_object_set_new(object, "first_ns", number(c->first_ns));
	json_object_set_new(object, "last_ns", number(c->last_ns));
	json_array_append_new(ends, half_of(c, 0));
	json_array_append_new(ends, half_of(c, 1));
	json_object_set_new(object, "ends", ends);
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}
