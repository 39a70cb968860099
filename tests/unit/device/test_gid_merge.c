/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* A table and a host as text: addresses in their order, each "ADDRESS@INTERFACE". A '?' at the end: tentative; a '-':
 * lost. "." is an empty place. Interface "eth0" has number 2, "eth1" 3, "lo" 1; "eth0'" is eth0, made again as 9. */
static struct roci_gid_entry entry_of(const char *text)
{
	struct roci_gid_entry entry = {.state = ROCI_GID_READY, .if_mtu = 1500, .path_mtu = 1024};
	char address[64], name[16] = {0}, last = text[strlen(text) - 1];

	assert_int_equal(sscanf(text, "%63[^@]@%15[a-z0-9]", address, name), 2);
	gid_of(address, entry.gid);
	memcpy(entry.ifname, name, sizeof(name));
	entry.ifindex = !strcmp(name, "lo") ? 1 : (uint32_t)name[3] - '0' + 2;
	if (last == '\'')
		entry.ifindex = 9;
	if (last == '?')
		entry.state = ROCI_GID_TENTATIVE;
	return entry;
}

static int parse(const char *text, struct roci_gid_entry *entries)
{
	char copy[512], *rest;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		entries[n++] = entry_of(word);
	return n;
}

static struct roci_gid_change merge(struct roci_gids *table, const char *host, uint32_t in_use)
{
	struct roci_gid_entry now[ROCI_MAX_GIDS];
	int count = parse(host, now);

	return roci_gids_merge(table, now, count, in_use);
}

static void print(const struct roci_gids *table, char text[512])
{
	static const char *mark[] = {[ROCI_GID_READY] = "", [ROCI_GID_TENTATIVE] = "?", [ROCI_GID_GONE] = "-"};
	char *p = text;

	*p = 0;
	for (int i = 0; i < table->count; i++) {
		const struct roci_gid_entry *e = &table->entries[i];
		char address[INET6_ADDRSTRLEN];
		bool ipv4 = !memcmp(e->gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

		inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? e->gid + 12 : e->gid, address, sizeof(address));
		if (e->state == ROCI_GID_FREE)
			p += sprintf(p, "%s.", i ? " " : "");
		else
			p += sprintf(p, "%s%s@%s%s%s", i ? " " : "", address, e->ifname, e->ifindex == 9 ? "'" : "",
				     mark[e->state]);
	}
}

#define V4   "10.0.0.1@eth0"
#define V4B  "10.0.0.2@eth0"
#define VPN  "10.8.0.1@eth1"
#define V6   "fd00::1@eth0"
#define LL   "fe80::1@eth0"
#define LO   "127.0.0.1@lo"
#define HOST V4 " " V6 " " LL " " LO

/* A host, then what it has later; the table that follows, and what is said of the change. */
static const struct {
	const char *name, *host[4];
	uint32_t in_use;
	const char *table;
	uint32_t unready, ready, renewed; /* of the last merge */
	bool visible;
} cases[] = {
	{"a fresh table is as the host", {HOST}, 0, HOST, 0, 0xf, 0, true},
	{"nothing changed", {HOST, HOST}, 0, HOST, 0, 0, 0, false},
	{"another order changes nothing", {HOST, LO " " LL " " V6 " " V4}, 0, HOST, 0, 0, 0, false},
	{"a new address comes last", {HOST, VPN " " HOST}, 0, HOST " " VPN, 0, 0x10, 0, true},
	{"a lost address keeps its place", {HOST, V4 " " LL " " LO}, 0, V4 " " V6 "- " LL " " LO, 2, 0, 0, true},
	{"and has it again", {HOST, V4 " " LL " " LO, HOST}, 0, HOST, 0, 2, 0, true},
	{"a new one goes elsewhere",
	 {HOST, V4 " " V6 " " LO, VPN " " V4 " " V6 " " LO},
	 0,
	 V4 " " V6 " " LL "- " LO " " VPN,
	 0,
	 0x10,
	 0,
	 true},
	{"another DHCP address", {HOST, V4B " " V6 " " LL " " LO}, 0, V4B " " V6 " " LL " " LO, 1, 1, 1, true},
	{"another DHCP address while the old one is in use",
	 {HOST, V4B " " V6 " " LL " " LO},
	 1,
	 V4 "- " V6 " " LL " " LO " " V4B,
	 1,
	 0x10,
	 0,
	 true},
	{"all lost", {HOST, ""}, 0, V4 "- " V6 "- " LL "- " LO "-", 0xf, 0, 0, true},
	{"the lid opens: IPv6 first", {HOST, LO, LL " " LO, HOST}, 0, HOST, 0, 3, 0, true},
	{"tentative at the start", {V4 " " V6 "? " LL "? " LO}, 0, V4 " " V6 "? " LL "? " LO, 0, 9, 0, true},
	{"tentative, then ready", {V4 " " V6 "? " LL "? " LO, HOST}, 0, HOST, 0, 6, 0, true},
	{"a duplicate was found", {V4 " " V6 "? " LO, V4 " " LO}, 0, V4 " " V6 "- " LO, 0, 0, 0, true},
	{"tentative and new", {V4 " " LO, V4 " " V6 "? " LO}, 0, V4 " " LO " " V6 "?", 0, 0, 0, true},
	{"tentative and new, then ready",
	 {V4 " " LO, V4 " " V6 "? " LO, V4 " " V6 " " LO},
	 0,
	 V4 " " LO " " V6,
	 0,
	 4,
	 0,
	 true},
	{"on another interface", {V4 " " LO, "10.0.0.1@eth1 " LO}, 0, "10.0.0.1@eth1 " LO, 1, 1, 0, true},
	{"link-local on another interface",
	 {LL " " LO, "fe80::1@eth1 " LO},
	 0,
	 LL "- " LO " fe80::1@eth1",
	 1,
	 4,
	 0,
	 true},
	{"link-local on an interface that was made again", {LL " " LO, LO, LL "' " LO}, 0, LL "' " LO, 0, 1, 0, true},
	{"link-local addresses of two interfaces stay apart",
	 {LL " fe80::1@eth1 " LO, "fe80::1@eth1 " LL " " LO},
	 0,
	 LL " fe80::1@eth1 " LO,
	 0,
	 0,
	 0,
	 false},
};

static void follows_the_host(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct roci_gids table = {.count = 0};
		struct roci_gid_change change = {0};
		char text[512];

		for (int k = 0; k < 4 && cases[i].host[k]; k++)
			change = merge(&table, cases[i].host[k], cases[i].in_use);
		print(&table, text);
		if (strcmp(text, cases[i].table) || change.unready != cases[i].unready ||
		    change.ready != cases[i].ready || change.renewed != cases[i].renewed ||
		    change.visible != cases[i].visible)
			fail_msg("%s:\n %s\n unready %#x ready %#x renewed %#x visible %d", cases[i].name, text,
				 change.unready, change.ready, change.renewed, change.visible);
		assert_int_equal(change.left_out, 0);
	}
}

/* ---- a full table ---- */

static void number(struct roci_gid_entry *entry, unsigned n)
{
	char text[64];

	snprintf(text, sizeof(text), "10.1.%u.%u@eth%u", n / 256, n % 256, n % 2);
	*entry = entry_of(text);
}

static void fill(struct roci_gids *table)
{
	struct roci_gid_entry now[ROCI_MAX_GIDS];

	*table = (struct roci_gids){.count = 0};
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		number(&now[i], i);
	roci_gids_merge(table, now, ROCI_MAX_GIDS, 0);
	assert_int_equal(table->count, ROCI_MAX_GIDS);
}

static void a_full_table_leaves_out_the_least_useful(void **state)
{
	struct roci_gid_entry now[ROCI_MAX_GIDS + 2];
	struct roci_gids table, before;
	struct roci_gid_change change;

	fill(&table);
	before = table;
	for (unsigned i = 0; i < ROCI_MAX_GIDS + 2; i++)
		number(&now[i], 33 - i);
	change = roci_gids_merge(&table, now, ROCI_MAX_GIDS + 2, 0);
	assert_int_equal(change.left_out, 2);
	assert_false(change.visible);
	assert_memory_equal(table.entries, before.entries, sizeof(table.entries));
}

/* 4 is lost first, 0 last. A new address gets the place that was lost longest ago, of those that are not in use. */
static void the_longest_lost_is_given_away(void **state)
{
	struct roci_gid_entry all[ROCI_MAX_GIDS], now[ROCI_MAX_GIDS];
	struct roci_gid_change change;
	struct roci_gids table;

	fill(&table);
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		number(&all[i], i);
	for (unsigned lost = 1; lost <= 5; lost++) {
		memcpy(now, all, sizeof(now));
		memmove(now + 5 - lost, all + 5, (ROCI_MAX_GIDS - 5) * sizeof(*all));
		roci_gids_merge(&table, now, ROCI_MAX_GIDS - (int)lost, 0);
	}
	now[ROCI_MAX_GIDS - 5] = entry_of("fd00::1@eth1"); /* no IPv6 address was lost */
	change = roci_gids_merge(&table, now, ROCI_MAX_GIDS - 4, 1u << 4 | 1u << 3 | 1u << 0);
	assert_int_equal(change.left_out, 0);
	assert_int_equal(change.renewed, 1u << 2);
	assert_int_equal(change.ready, 1u << 2);
	assert_false(roci_gids_merge(&table, now, ROCI_MAX_GIDS - 4, 0).visible);
}

static void nothing_is_taken_from_what_is_in_use(void **state)
{
	struct roci_gid_entry now[1];
	struct roci_gid_change change;
	struct roci_gids table;

	fill(&table);
	roci_gids_merge(&table, now, 0, 0);
	now[0] = entry_of(V4);
	change = roci_gids_merge(&table, now, 1, UINT32_MAX);
	assert_int_equal(change.left_out, 1);
	assert_false(change.visible);
	change = roci_gids_merge(&table, now, 1, ~(1u << 17));
	assert_int_equal(change.left_out, 0);
	assert_int_equal(change.renewed, 1u << 17);
}

/* A host that gets another IPv6 address every day does not fill the table. */
static void addresses_that_change_daily_take_turns(void **state)
{
	struct roci_gids table = {.count = 0};
	char host[128];

	for (int day = 0; day < 1000; day++) {
		snprintf(host, sizeof(host), V4 " fd00::%x@eth0 fd00::%x@eth0 " LO, day + 0x100, day + 0x101);
		assert_int_equal(merge(&table, host, 0).left_out, 0);
	}
	assert_in_range(table.count, 4, 5);
}

static void only_what_the_host_has_is_found(void **state)
{
	struct roci_gids table = {.count = 0};
	uint8_t gid[16];

	merge(&table, HOST, 0);
	gid_of("fd00::1", gid);
	assert_int_equal(roci_gids_find(&table, gid, 0), 1);
	merge(&table, V4 " " LL " " LO, 0);
	assert_int_equal(roci_gids_find(&table, gid, 0), -1);
	assert_ptr_equal(roci_gids_first(&table), &table.entries[0]);
	merge(&table, LO, 0);
	assert_ptr_equal(roci_gids_first(&table), &table.entries[3]);
	merge(&table, V4 "?", 0);
	assert_null(roci_gids_first(&table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_the_host),
		cmocka_unit_test(a_full_table_leaves_out_the_least_useful),
		cmocka_unit_test(the_longest_lost_is_given_away),
		cmocka_unit_test(nothing_is_taken_from_what_is_in_use),
		cmocka_unit_test(addresses_that_change_daily_take_turns),
		cmocka_unit_test(only_what_the_host_has_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
