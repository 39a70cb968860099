/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet in one line, and with -v in many. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "capture/fields.h"
#include "capture/line.h"
#include "dump.h"
#include "text.h"
#include "wire/gid.h"

#define OPCODE_COLUMN 28
#define OPCODE_CHARS  48
#define ENDS_MIN      39
#define ENDS_MAX      100
#define BYTES_SHOWN   32 /* of a packet that is not understood, without -v */
#define ROW_BYTES     16

const char *dump_address(const uint8_t gid[16], char text[48])
{
	if (roci_gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid + ROCI_GID_IPV4_AT, text, 48);
	else
		inet_ntop(AF_INET6, gid, text, 48);
	return text;
}

static bool is_roce(const struct capture_event *e)
{
	return e->sort == CAPTURE_SORT_ROCE || e->sort == CAPTURE_SORT_CM;
}

/* "10.0.0.1 0x000011 > 10.0.0.2 0x000012" */
static void print_ends(const struct capture_event *e, char *text, size_t size)
{
	char src[48], dst[48], from[16] = "", to[16] = "";

	text[0] = 0;
	if (!e->frame->ip)
		return;
	if (is_roce(e)) {
		snprintf(from, sizeof(from), e->src_qpn_known ? " 0x%06" PRIx32 : " ?", e->src_qpn);
		snprintf(to, sizeof(to), " 0x%06" PRIx32, e->packet.dest_qpn);
	}
	snprintf(text, size, "%s%s > %s%s", dump_address(e->frame->flow.src, src), from,
		 dump_address(e->frame->flow.dst, dst), to);
}

/* Wireshark's name without the "RDMA" of WRITE and READ. */
static const char *short_name(const char *full, char name[OPCODE_CHARS])
{
	const char *rdma = strstr(full, "RDMA ");

	if (rdma)
		snprintf(name, OPCODE_CHARS, "%.*s%s", (int)(rdma - full), full, rdma + 5);
	return rdma ? name : full;
}

static const char *opcode_name(const struct capture_event *e, char name[OPCODE_CHARS])
{
	switch (e->sort) {
	case CAPTURE_SORT_ROCE:
	case CAPTURE_SORT_CM: return short_name(e->packet.op->name, name);
	case CAPTURE_SORT_IWARP: return "iWARP";
	case CAPTURE_SORT_ICMP: return "ICMP";
	case CAPTURE_SORT_NOT_UNDERSTOOD: return e->frame->protocol == CAPTURE_ROCE_V1 ? "RoCEv1" : "RoCEv2";
	default: return "";
	}
}

/* Sixteen bytes a row. */
static void print_bytes(const uint8_t *bytes, uint32_t len, const char *indent)
{
	for (uint32_t at = 0; at < len; at += ROW_BYTES) {
		printf("%s%04" PRIx32, indent, at);
		for (uint32_t i = at; i < len && i < at + ROW_BYTES; i++)
			printf(" %02x", bytes[i]);
		putchar('\n');
	}
}

/* ---- every field ---- */

struct fields {
	const char *group;
};

static void print_field(void *context, const struct capture_field *field)
{
	struct fields *fields = context;
	char text[256];

	if (!fields->group || strcmp(fields->group, field->group))
		printf("%s      %s:", fields->group ? "\n" : "", field->group);
	fields->group = field->group;
	if (field->kind == CAPTURE_FIELD_BYTES) {
		printf(" %s\n", field->name);
		print_bytes(field->bytes, field->len, "        ");
		fields->group = NULL;
	} else {
		printf(" %s %s", field->name, capture_field_print(field, text, sizeof(text)));
	}
}

static void print_time(uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("      time: %s.%09" PRIu64 " UTC", text, time_ns % 1000000000);
}

static void print_fields(const struct capture_event *e)
{
	struct fields fields = {NULL};

	print_time(e->record->time_ns);
	printf(", frame of %" PRIu32 " bytes", e->record->original_len);
	if (e->conversation)
		printf(", conversation %" PRIu32, e->conversation);
	if (e->sent_number)
		printf(", left in packet %" PRIu64, e->sent_number);
	putchar('\n');
	capture_fields(e, print_field, &fields);
	if (fields.group)
		putchar('\n');
}

/* ---- the line ---- */

static void print_comments(const struct capture_record *record)
{
	struct capture_option option;
	uint32_t at = 0;

	while (capture_option_next(record, &at, &option)) {
		if (option.code != CAPTURE_OPTION_COMMENT || capture_option_is_made_up(&option))
			continue; /* the latter is in the meaning */
		fputs("      comment: ", stdout);
		text_print(stdout, option.bytes, option.len);
		putchar('\n');
	}
}

/* The columns that packets and records have alike. That of the ends grows with what is in it. */
static void print_columns(uint64_t time_ns, uint64_t begin_ns, const char *direction, const char *ends,
			  const char *what)
{
	static int width = ENDS_MIN;
	int64_t since = (int64_t)(time_ns - begin_ns);

	if ((int)strlen(ends) > width && strlen(ends) < ENDS_MAX)
		width = (int)strlen(ends);
	printf(" %11.6f %s%-*s  %-*s ", (double)since / 1e9, direction, width, ends, OPCODE_COLUMN, what);
}

void dump_line(const struct capture_event *e, uint64_t begin_ns, bool verbose)
{
	static const char *const directions[] = {
		[CAPTURE_PASSING] = "", [CAPTURE_INBOUND] = "in  ", [CAPTURE_OUTBOUND] = "out "};
	char ends[160], name[OPCODE_CHARS], meaning[CAPTURE_MEANING_CHARS];

	print_ends(e, ends, sizeof(ends));
	printf("%6" PRIu64, e->record->number);
	print_columns(e->record->time_ns, begin_ns, directions[e->record->direction], ends, opcode_name(e, name));
	if (is_roce(e))
		printf("PSN %-8" PRIu32 " %5" PRIu32 "  ", e->packet.psn, e->packet.payload_len);
	else
		printf("             %5" PRIu32 "  ", e->frame->len);
	if (e->frame->protocol == CAPTURE_ROCE_V1 && is_roce(e))
		fputs("RoCEv1: ", stdout);
	puts(capture_meaning(e, meaning));
	print_comments(e->record);
	if (verbose)
		print_fields(e);
	else if (e->sort == CAPTURE_SORT_NOT_UNDERSTOOD || e->sort == CAPTURE_SORT_OTHER)
		print_bytes(e->frame->bytes, e->frame->len < BYTES_SHOWN ? e->frame->len : BYTES_SHOWN, "        ");
}

/* ---- what is no packet ---- */

/* "pid 4711 0x000011 > 0x000012" */
static void print_record_ends(const struct roci_record *r, char *text, size_t size)
{
	struct capture_line line = {text, size, 0};

	capture_put(&line, "pid %" PRIu32, r->pid);
	if (r->kind == ROCI_RECORD_POST_SRQ)
		capture_put(&line, " SRQ %" PRIu32, r->queue);
	if (r->kind == ROCI_RECORD_FAULT || r->kind == ROCI_RECORD_CM_EVENT)
		return;
	if (r->qpn)
		capture_put(&line, " 0x%06" PRIx32, r->qpn);
	if (r->peer)
		capture_put(&line, " > 0x%06" PRIx32, r->peer);
}

void dump_run(const struct capture_run *run, uint64_t begin_ns, bool verbose)
{
	const struct roci_record *r = &run->first;
	char ends[160], meaning[CAPTURE_RECORD_CHARS];
	struct fields fields = {NULL};

	print_record_ends(r, ends, sizeof(ends));
	printf("%6s", "-");
	print_columns(r->time_ns, begin_ns, "    ", ends, capture_record_name(r));
	if (r->length && r->kind != ROCI_RECORD_QP_STATE)
		printf("             %5" PRIu64 "  ", r->length);
	else
		printf("                    ");
	capture_run_meaning(run, meaning);
	text_print(stdout, meaning, strlen(meaning));
	putchar('\n');
	if (!verbose)
		return;
	print_time(r->time_ns);
	putchar('\n');
	capture_record_fields(r, print_field, &fields);
	putchar('\n');
}

void dump_block(const struct capture_record *record, uint64_t begin_ns)
{
	char what[32];

	if (record->kind == CAPTURE_CUSTOM)
		snprintf(what, sizeof(what), "custom block");
	else
		snprintf(what, sizeof(what), "block of type 0x%08" PRIx32, record->local_type);
	printf("%6s", "-");
	print_columns(record->time_ns, begin_ns, "", "", what);
	printf("             %5" PRIu32 "  ", record->len);
	if (record->kind == CAPTURE_CUSTOM)
		printf("of private enterprise number %" PRIu32 "\n", record->pen);
	else
		puts("for local use, of another program");
	print_bytes(record->bytes, record->len < BYTES_SHOWN ? record->len : BYTES_SHOWN, "        ");
}
