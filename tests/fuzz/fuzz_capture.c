/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a capture: the reader ends, and whatever it finds goes through the tracker, into words and into fields,
 * and into a ladder, which is drawn in each way.
 * Nothing may be read or written out of bounds.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer a libFuzzer target; without, a program that makes captures of the packets
 * of tests/captures, in every format, and mutates them: fuzz_capture [iterations [seed]].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "capture/record_meaning.h"
#include "capture_file.h"
#include "ladder/ladder.h"
#include "seeded.h"

/* What was seen in all runs: main() checks that the mutants are of every sort. */
static unsigned long sorts[CAPTURE_SORT_OTHER + 1], flags[14], records, broken, ours, lines;

static void take_field(void *context, const struct capture_field *field)
{
	const uint8_t *begin = ((const struct capture_record *)context)->bytes;
	char text[40];

	CHECK(field->group && field->name);
	if (field->kind == CAPTURE_FIELD_BYTES && field->len && strcmp(field->group, "cm") &&
	    strcmp(field->group, "cm_private"))
		CHECK(field->bytes >= begin &&
		      field->bytes + field->len <= begin + ((const struct capture_record *)context)->len);
	CHECK(strlen(capture_field_print(field, text, sizeof(text))) < sizeof(text));
}

static void check_event(const struct capture_event *e, const struct capture_record *record)
{
	char meaning[CAPTURE_MEANING_CHARS];

	CHECK(e->sort <= CAPTURE_SORT_OTHER);
	CHECK(strlen(capture_meaning(e, meaning)) > 0);
	CHECK(!strchr(meaning, '\n'));
	if (e->sort == CAPTURE_SORT_ROCE)
		CHECK(capture_payload(e) <= e->packet.payload_len);
	CHECK(!e->message.packets || e->message.packet <= e->message.packets);
	capture_fields(e, take_field, (void *)(uintptr_t)record);
	sorts[e->sort]++;
	for (unsigned i = 0; i < 14; i++)
		flags[i] += e->flags >> i & 1;
}

static void take_packet(struct capture_tracker *t, struct ladder *l, const struct capture_record *record)
{
	struct capture_frame frame;
	struct capture_event e;

	capture_tracker_take(t, record, &frame, &e);
	do {
		check_event(&e, record);
		ladder_take_packet(l, &e);
	} while (capture_tracker_more(t, &frame, &e));
}

static void take_number(void *context, const struct capture_field *field)
{
	char text[40];

	CHECK(!strcmp(field->group, "record") && field->name);
	CHECK(strlen(capture_field_print(field, text, sizeof(text))) < sizeof(text));
}

static void take_record(struct capture_tracker *t, struct ladder *l, const struct capture_record *record)
{
	struct capture_run run = {.count = 0};
	char meaning[CAPTURE_RECORD_CHARS];
	struct roci_record r;

	if (!roci_record_parse(record->bytes, record->len, record->swapped, &r))
		return;
	CHECK(capture_run_add(&run, &r) && capture_record_name(&r) && capture_record_word(&r));
	CHECK(strlen(capture_run_meaning(&run, meaning)) > 0);
	capture_record_fields(&r, take_number, NULL);
	capture_tracker_record(t, &r);
	ladder_take_record(l, &r);
	ours++;
}

static void draw(struct ladder *l, const struct capture_tracker *t)
{
	const struct ladder_text_options options = {.columns = 100};
	FILE *nowhere = fopen("/dev/null", "w");

	CHECK(nowhere && !ladder_finish(l, t));
	CHECK(!ladder_write_text(l, &options, nowhere));
	CHECK(!ladder_write_svg(l, nowhere));
	CHECK(!ladder_write_page(l, nowhere));
	lines += l->line_count;
	fclose(nowhere);
}

static void take_conversation(void *context, const struct capture_conversation *c)
{
	uint32_t *last = context;

	CHECK(c->number > *last);
	*last = c->number;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	FILE *file = len ? fmemopen((void *)(uintptr_t)bytes, len, "r") : fopen("/dev/null", "r");
	struct capture_reader *r = capture_reader_create(file);
	struct capture_tracker *t = capture_tracker_create();
	struct ladder *l = ladder_create(&(const struct ladder_options){.title = "fuzz", .max_packets = 1000});
	struct capture_record record;
	enum capture_result result;
	struct capture_option option;
	uint32_t last = 0;

	CHECK(file && r && t && l);
	while ((result = capture_reader_next(r, &record)) == CAPTURE_RECORD) {
		uint32_t at = 0;

		records++;
		while (capture_option_next(&record, &at, &option))
			CHECK(option.bytes + option.len <= record.options + record.options_len);
		if (record.kind == CAPTURE_PACKET)
			take_packet(t, l, &record);
		else if (record.kind == CAPTURE_LOCAL)
			take_record(t, l, &record);
	}
	broken += result == CAPTURE_BROKEN;
	CHECK((result == CAPTURE_BROKEN) == (*capture_reader_why(r) != 0));
	capture_tracker_each(t, take_conversation, &last);
	draw(l, t);
	ladder_destroy(l);
	capture_tracker_destroy(t);
	capture_reader_destroy(r);
	fclose(file);
	return 0;
}

#ifndef ROCI_LIBFUZZER

static struct capture_file file;

/* An Ethernet frame, a cooked one or raw IP, of a real packet. */
static uint32_t put_frame(uint8_t *to, const struct capture_packet *p, uint16_t link_type, uint64_t *seed)
{
	uint32_t at = 0, ip = (uint32_t)(p->ip_len + ROCI_UDP_BYTES + p->len);
	uint16_t type = p->ipv4 ? 0x0800 : 0x86dd;

	if (link_type == FILE_ETHERNET) {
		memset(to, 2, 12);
		at = 12;
		for (size_t tags = random_below(seed, 5); tags > 2; tags--, at += 4)
			roci_put_be32(to + at, 0x81000064);
		roci_put_be16(to + at, type);
		at += 2;
	} else if (link_type == 113 || link_type == 276) {
		memset(to, 0, 20);
		roci_put_be16(to + (link_type == 113 ? 14 : 0), type);
		at = link_type == 113 ? 16 : 20;
	}
	memcpy(to + at, p->ip, ip);
	return at + ip;
}

static void mutate(uint8_t *bytes, uint32_t len, uint64_t *seed)
{
	for (size_t n = random_below(seed, 4); len && n > 0; n--) {
		size_t at = random_below(seed, random_below(seed, 4) && len > 80 ? 80 : len);

		if (random_below(seed, 2))
			bytes[at] ^= (uint8_t)(1u << random_below(seed, 8));
		else
			bytes[at] = (uint8_t)random_next(seed);
	}
}

/* A record of what a program did with a QP that the packets may have. */
static void put_record(uint64_t now, const struct capture_packet *p, uint64_t *seed)
{
	uint32_t qpn = roci_get_be32(p->bytes + 4) & ROCI_QPN_MASK;
	struct roci_record r = {.time_ns = now,
				.kind = (uint16_t)(1 + random_below(seed, ROCI_RECORD_KINDS - 1)),
				.pid = (uint32_t)(1 + random_below(seed, 2)),
				.qp_type = (uint8_t)random_below(seed, 5),
				.opcode = (uint8_t)(random_below(seed, 2) ? random_below(seed, 16) : random_next(seed)),
				.status = (uint32_t)random_below(seed, 24),
				.flags = (uint32_t)random_next(seed),
				.qpn = qpn,
				.peer = qpn,
				.queue = 1,
				.imm = (uint32_t)random_below(seed, 4096),
				.wr_id = random_below(seed, 3),
				.length = random_next(seed) >> random_below(seed, 64)};
	uint8_t body[ROCI_RECORD_BYTES];
	size_t at = file_begin(&file, ROCI_RECORD_BLOCK);

	memcpy(r.local_gid, p->flow.dst, sizeof(r.local_gid));
	memcpy(r.remote_gid, p->flow.src, sizeof(r.remote_gid));
	for (unsigned i = 0; i < sizeof(r.text); i++)
		r.text[i] = (char)random_next(seed);
	roci_record_build(&r, body);
	file_bytes(&file, body, sizeof(body));
	file_end(&file, at);
}

/* A few packets that follow each other in a real capture; some lost, repeated, changed. */
static void make(const struct captures *captures, uint64_t *seed)
{
	static const uint16_t link_types[] = {FILE_ETHERNET, FILE_RAW, 113, 276};
	uint16_t link_type = link_types[random_below(seed, 4)];
	bool ng = random_below(seed, 2);
	size_t first = random_below(seed, captures->count), count = 1 + random_below(seed, 24);
	uint64_t now = 1700000000000000000;

	file.len = 0;
	file.swapped = random_below(seed, 2);
	if (ng) {
		file_section(&file);
		file_interface(&file, link_type, (uint8_t)(random_below(seed, 4) ? 9 : random_next(seed)));
	} else {
		file_pcap(&file, random_below(seed, 2) ? 0xa1b2c3d4 : 0xa1b23c4d, link_type);
	}
	for (size_t i = 0; i < count; i++) {
		uint8_t frame[9000];
		uint32_t len;

		len = put_frame(frame,
				&captures->packets[(first + i - random_below(seed, 3) % (i + 1)) % captures->count],
				link_type, seed);
		if (random_below(seed, 3) == 0)
			mutate(frame, len, seed);
		now += random_next(seed) % 1000000;
		if (ng && !file.swapped && random_below(seed, 2))
			put_record(now, &captures->packets[first], seed);
		if (ng)
			file_packet(&file, now, (unsigned)random_below(seed, 4), frame, len);
		else
			file_pcap_packet(&file, (uint32_t)(now / 1000000000), (uint32_t)(now % 1000000), frame, len,
					 len);
	}
	if (random_below(seed, 3) == 0)
		mutate(file.bytes, (uint32_t)file.len, seed);
	if (random_below(seed, 3) == 0)
		file.len = random_below(seed, file.len);
}

int main(int argc, char **argv)
{
	struct seeded run = seeded_begin(argc, argv, 20000);
	struct captures captures;

	if (!captures_load(&captures, NULL))
		return 1;
	while (seeded_next(&run)) {
		uint8_t *exact;

		make(&captures, &run.seed);
		exact = malloc(file.len ? file.len : 1); /* so that a sanitizer sees any overrun */
		CHECK(exact);
		memcpy(exact, file.bytes, file.len);
		LLVMFuzzerTestOneInput(exact, file.len);
		free(exact);
	}
	printf("%lu records, %lu of ours, %lu broken files, %lu life lines\n", records, ours, broken, lines);
	for (unsigned i = 0; i <= CAPTURE_SORT_OTHER; i++)
		printf("sort %u: %lu\n", i, sorts[i]);
	for (unsigned i = 0; i < 14; i++) {
		printf("flag %u: %lu\n", i, flags[i]);
		CHECK(flags[i] || run.iterations < 10000);
	}
	CHECK(broken && ours && lines && sorts[CAPTURE_SORT_CM] && sorts[CAPTURE_SORT_NOT_UNDERSTOOD]);
	captures_free(&captures);
	return 0;
}

#endif
