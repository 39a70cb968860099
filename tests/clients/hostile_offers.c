/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrong offers: names, entries, counts, sizes. */
#include "hostile_sender.h"
#include "honest_sender.h"

static struct hostile *const h = &hostile;

static void bad_name(void)
{
	static const char *const names[] = {"..",   "../evil",     "/etc/evil", "a/../../evil",        ".",
					    "a//b", "a/",          "",          ".roci-01234567.part", "a/./b",
					    "//",   "..//..//evil"};
	struct mover_entry e = honest_file(names[hostile_variant], 0);
	honest_lanes(MOVER_WRITE);
	honest_offer(0, &e);
}

static void long_name(void)
{
	static char name[MOVER_PATH_MAX + 2];
	struct mover_entry e;

	memset(name, 'x', hostile_variant ? MOVER_PATH_MAX + 1 : MOVER_COMPONENT_MAX + 1);
	for (unsigned i = 100; hostile_variant && i < MOVER_PATH_MAX; i += 100)
		name[i] = '/';
	e = honest_file(name, 0);
	honest_lanes(MOVER_WRITE);
	honest_offer(0, &e);
}

static void bad_entry(void)
{
	struct mover_entry e = honest_file("entry", 10), symlink = honest_symlink("link", "target");

	switch (hostile_variant) {
	case 0: e.kind = (enum mover_kind)4; break;
	case 1: e.kind = (enum mover_kind)255; break;
	case 2: e.mode = 0177777; break;
	case 3: e.mtime_ns = 1000000000; break;
	case 4: e.size = UINT64_MAX; break;
	case 5: e.kind = MOVER_FOLDER; break; /* with a size */
	case 6: e.name = (const uint8_t *)"en\0ry"; break;
	case 7: e = symlink, e.target = (const uint8_t *)"tar\0et"; break;
	case 8: e = symlink, e.target_len = 0; break;
	case 9: e = symlink, e.size = 7; break;
	case 10: e.target = (const uint8_t *)"t", e.target_len = 1; break;
	}
	honest_lanes(MOVER_WRITE);
	honest_offer(0, &e);
}

static void lying_offer(void)
{
	static const struct {
		uint32_t first;
		uint16_t says, has, cut;
	} lies[] = {{0, 0, 1, 0}, {0, 2, 1, 0}, {0, 65535, 1, 0}, {1, 1, 1, 0}, {UINT32_MAX, 1, 1, 0},
		    {0, 1, 2, 0}, {0, 1, 1, 1}, {0, 5, 5, 0},     {0, 1, 1, 30}};
	struct mover_entry e = honest_file("entry", 0);
	struct cursor_out *out;

	honest_lanes(MOVER_WRITE);
	out = honest_begin_offer(lies[hostile_variant].first, lies[hostile_variant].says);
	for (unsigned i = 0; i < lies[hostile_variant].has; i++)
		proto_put_entry(out, &e);
	out->at -= lies[hostile_variant].cut;
	hostile_send(h);
}

static void through_a_symlink(void)
{
	struct mover_entry way = honest_symlink("way", hostile_outside), evil = honest_file("way/evil", 0),
			   over = honest_file("way", 10);
	struct proto_segment segment;

	honest_lanes(MOVER_WRITE);
	honest_take_grants();
	MUST(honest_verdict(0, &way) == PROTO_DONE);
	MUST(honest_verdict(1, &evil) == PROTO_REFUSED);
	evil.kind = MOVER_FOLDER;
	MUST(honest_verdict(2, &evil) == PROTO_REFUSED);
	/* a file with the name of the symbolic link replaces the link, not its target */
	MUST(honest_verdict(3, &over) == PROTO_WANT);
	memcpy(h->memory, "0123456789", 10);
	segment = honest_segment(3, 10);
	honest_write(10);
	hostile_done(h, 0, 0, honest_grants[0].window);
	honest_fin(&(struct proto_descriptor){.window = honest_grants[0].window, .bytes = 10, .count = 1}, &segment);
	MUST(honest_result().verdict == PROTO_DONE);
}

/* The receiver has no --links. */
static void symlink_outwards(void)
{
	const char *targets[] = {hostile_outside, "..", "./../outside", "way/../..", "/"};
	struct mover_entry way = honest_symlink("way", "."), out = honest_symlink("out", targets[hostile_variant]);

	honest_lanes(MOVER_WRITE);
	MUST(honest_verdict(0, &way) != PROTO_REFUSED);
	MUST(honest_verdict(1, &out) == PROTO_REFUSED);
}

static void lying_size(void)
{
	struct mover_entry e = honest_file("huge", hostile_variant ? INT64_MAX : 1ull << 62);
	honest_lanes(MOVER_WRITE);
	MUST(honest_verdict(0, &e) == PROTO_REFUSED);
}

const struct scenario hostile_offers[] = {
	{"bad-name", bad_name, ERROR_PROTOCOL, 12},
	{"long-name", long_name, ERROR_PROTOCOL, 2},
	{"bad-entry", bad_entry, ERROR_PROTOCOL, 11},
	{"lying-offer", lying_offer, ERROR_PROTOCOL, 9},
	{"through-a-symlink", through_a_symlink, CHECKED, 1},
	{"symlink-outwards", symlink_outwards, CHECKED, 5},
	{"lying-size", lying_size, CHECKED, 2},
	{0},
};
