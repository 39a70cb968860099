/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom a side door believes (door_trust.h), against a model, led by a script of bytes: users of the host open and close
 * sockets at UDP port 4791 of any address, or of all, as the kernel's lists show them, and send to the door. Addresses
 * come and go, time passes, and the lists may hold anything.
 *
 * Only this process's own user and those who had the port of the packet's address within the last second are believed.
 * Whoever has it is believed a moment later. A user without a number of his own never is.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_trust [iterations [seed]].
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "device/door_trust.h"
#include "device/port_holder.h"
#include "room.h"
#include "script.h"
#include "seeded.h"
#include "wire/gid.h"
#include "wire/packet.h"

enum { SOCKETS = 12, ADDRESSES = 5, LOOKS = 64, SLOW_NS = 1000000000, SOON_NS = 100000000 };

/* The first ones may be the host's; the others are every address, of IPv4 and of both. */
static const uint8_t addresses[ADDRESSES + 2][16] = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
						     {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2},
						     {[10] = 0xff, [11] = 0xff, 10, 0, 0, 3},
						     {0xfd, [15] = 1},
						     {0xfd, [15] = 2},
						     {[10] = 0xff, [11] = 0xff},
						     {0}};

struct one {
	bool open, v6;
	unsigned address;
	uint16_t port;
	uint32_t uid;
};

/* The lists as they were until a time. */
struct look {
	struct one sockets[SOCKETS];
	uint64_t until;
};

static struct {
	uint64_t now;
	struct roci_gids gids;
	struct roci_door_trust trust;
	struct one sockets[SOCKETS];
	struct look looks[LOOKS]; /* a ring */
	unsigned look_count;
	bool odd; /* the lists held anything, so the model knows nothing */
} world;

static unsigned long believed, refused, late; /* in all runs, to see that the fuzzer gets far enough */

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", room_path(), name);
	return path;
}

static void put_file(const char *name, const char *text, size_t len)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	close(fd);
}

/* ---- the kernel's lists ---- */

static int print_address(char *to, size_t room, const struct one *s)
{
	const uint8_t *gid = addresses[s->address];
	uint32_t words[4];

	memcpy(words, gid, 16);
	if (s->v6)
		return snprintf(to, room, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], s->port);
	return snprintf(to, room, "%08X:%04X", words[3], s->port);
}

static void put_table(const char *name, bool v6)
{
	char text[SOCKETS * 256 + 256], address[64];
	int len = snprintf(text, sizeof(text),
			   "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
			   "retrnsmt   uid  timeout inode ref pointer drops\n");

	for (unsigned i = 0; i < SOCKETS; i++) {
		if (!world.sockets[i].open || world.sockets[i].v6 != v6)
			continue;
		print_address(address, sizeof(address), &world.sockets[i]);
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				" %4u: %s %s:0000 07 00000000:00000000 00:00000000 00000000 %5u        0 %u 2 "
				"0000000000000000 0\n",
				i, address, v6 ? "00000000000000000000000000000000" : "00000000", world.sockets[i].uid,
				1000 + i);
	}
	put_file(name, text, (size_t)len);
}

/* The lists change now. */
static void put_tables(void)
{
	put_table("udp", false);
	put_table("udp6", true);
}

static void keep_look(void)
{
	struct look *look = &world.looks[world.look_count++ % LOOKS];

	memcpy(look->sockets, world.sockets, sizeof(look->sockets));
	look->until = world.now;
}

static void change_socket(void)
{
	struct one *s = &world.sockets[below(SOCKETS)];

	keep_look();
	*s = (struct one){.open = !one_in(4),
			  .address = (unsigned)below(ADDRESSES + 2),
			  .port = one_in(6) ? 4792 : ROCI_UDP_PORT,
			  .uid = (uint32_t)ONE_OF(getuid(), 1001, 1002, 1003, 1004, 1005, 65534)};
	s->v6 = !roci_gid_is_ipv4(addresses[s->address]);
	put_tables();
}

static void put_anything(void)
{
	char text[300];
	size_t len = below(sizeof(text));

	script_fill(text, len);
	put_file(one_in(2) ? "udp" : "udp6", text, len);
	world.odd = true;
}

/* ---- the model ---- */

static unsigned fit(const struct one *s, const uint8_t *gid)
{
	const uint8_t *bound = addresses[s->address];
	bool ipv4 = roci_gid_is_ipv4(gid);

	if (!s->open || s->port != ROCI_UDP_PORT)
		return 0;
	if (!memcmp(bound, gid, 16))
		return 3;
	if (s->address == ADDRESSES + 1) /* [::] */
		return ipv4 ? 1 : 2;
	return s->address == ADDRESSES && ipv4 ? 2 : 0;
}

/* Whether a packet to `gid` may come from the user. all: be he the fifth of the port's users, or later. */
static bool has_port(const struct one *sockets, const uint8_t *gid, uint32_t uid, bool all)
{
	uint32_t users[SOCKETS];
	unsigned best = 0, count = 0;

	for (unsigned i = 0; i < SOCKETS; i++)
		best = fit(&sockets[i], gid) > best ? fit(&sockets[i], gid) : best;
	for (unsigned n = 0; best && n < 2 * SOCKETS; n++) { /* first the list of IPv4 */
		const struct one *s = &sockets[n % SOCKETS];
		bool known = false;

		if (fit(s, gid) != best || s->v6 != (n >= SOCKETS))
			continue;
		for (unsigned k = 0; k < count; k++)
			known |= users[k] == s->uid;
		if (!known && (all || count < ROCI_DOOR_TRUST_USERS))
			users[count++] = s->uid;
	}
	for (unsigned k = 0; k < count; k++)
		if (users[k] == uid)
			return true;
	return false;
}

/* The ring of looks does not reach back a second: true, to be safe. */
static bool had_port(const uint8_t *gid, uint32_t uid)
{
	const struct look *oldest = &world.looks[world.look_count % LOOKS];

	if (has_port(world.sockets, gid, uid, true))
		return true;
	if (world.look_count >= LOOKS && world.now - oldest->until <= SLOW_NS)
		return true;
	for (unsigned i = 0; i < LOOKS && i < world.look_count; i++)
		if (world.now - world.looks[i].until <= SLOW_NS && has_port(world.looks[i].sockets, gid, uid, true))
			return true;
	return false;
}

static bool is_ours(const uint8_t *gid)
{
	for (int i = 0; i < world.gids.count; i++)
		if (roci_gid_is_present(&world.gids.entries[i]) && !memcmp(world.gids.entries[i].gid, gid, 16))
			return true;
	return false;
}

/* ---- the story ---- */

static bool ask(const uint8_t *gid, uint32_t uid)
{
	return roci_door_trusts(&world.trust, world.now, &world.gids, uid, gid);
}

static void send_one(void)
{
	uint32_t uid = (uint32_t)ONE_OF(getuid(), 1001, 1002, 1003, 1004, 1005, 65534, ROCI_NO_USER);
	const uint8_t *gid = addresses[below(ADDRESSES)];
	bool trusts = ask(gid, uid);

	believed += trusts;
	refused += !trusts;
	if (uid == world.trust.unmapped || uid == ROCI_NO_USER) {
		CHECK(!trusts);
		return;
	}
	if (uid == getuid()) {
		CHECK(trusts);
		return;
	}
	if (!is_ours(gid))
		CHECK(!trusts);
	if (world.odd)
		return;
	if (trusts)
		CHECK(had_port(gid, uid));
	if (!trusts && is_ours(gid) && has_port(world.sockets, gid, uid, false)) {
		late++;
		world.now += SOON_NS + 1;
		CHECK(ask(gid, uid));
	}
}

static void change_address(void)
{
	unsigned i = (unsigned)below(ADDRESSES);
	struct roci_gid_entry *e = &world.gids.entries[below(3)];

	memcpy(e->gid, addresses[i], 16);
	e->state = (enum roci_gid_state)ONE_OF(ROCI_GID_READY, ROCI_GID_READY, ROCI_GID_GONE, ROCI_GID_TENTATIVE);
	world.gids.count = 3;
}

static void step(void)
{
	switch (below(10)) {
	case 0:
	case 1:
	case 2: change_socket(); break;
	case 3: change_address(); break;
	case 4:
	case 5: world.now += ONE_OF(1000, SOON_NS / 2, SOON_NS, SOON_NS + 1, SLOW_NS, SLOW_NS + 1, 7000000000); break;
	case 6:
		if (one_in(40))
			put_anything();
		break;
	default: send_one();
	}
}

/* The maps of user numbers: of all, of one, or unreadable. */
static void choose_users(void)
{
	static const char *const maps[] = {"         0          0 4294967295\n", "      1000       1000          1\n",
					   "", "what is this"};
	static const char *const overflows[] = {"65534\n", "1003\n", "", "none"};
	unsigned map = (unsigned)below(4), overflow = (unsigned)below(4);
	char path[128];

	put_file("uid_map", maps[map], strlen(maps[map]));
	put_file("overflowuid", overflows[overflow], strlen(overflows[overflow]));
	snprintf(path, sizeof(path), "%s", path_of("uid_map"));
	world.trust.unmapped = roci_unmapped_user(path, path_of("overflowuid"));
	CHECK(world.trust.unmapped == (map == 0 ? ROCI_NO_USER : overflow == 1 ? 1003 : 65534));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int before;

	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	before = free_descriptor();
	world.now = 5000000000;
	world.trust.tables = room_path();
	choose_users();
	put_tables();
	change_address();
	while (!script_ended())
		step();
	CHECK(free_descriptor() == before); /* none is left */
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long runs = seeded_scripts(argc, argv, 2000, 800);

	printf("%lu believed, %lu refused, %lu a moment later\n", believed, refused, late);
	CHECK(runs < 1000 || (believed && refused && late));
	return 0;
}

#endif
