/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/port_holder.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "wire/gid.h"
#include "wire/packet.h"

/* Each 32 bits of the address are a number in the host's byte order, of bytes in the network's. */
static bool parse_address(const char *text, uint8_t gid[16])
{
	uint32_t words[4];
	size_t digits = strspn(text, "0123456789ABCDEFabcdef");
	unsigned count = digits == 32 ? 4 : 1;
	struct in_addr ipv4;

	for (unsigned i = 0; i < count; i++)
		if (sscanf(text + i * 8, "%8x", &words[i]) != 1)
			return false;
	if (digits == 32) {
		memcpy(gid, words, 16);
	} else if (digits == 8) {
		ipv4.s_addr = words[0];
		roci_gid_from_ipv4(gid, &ipv4);
	}
	return digits == 32 || digits == 8;
}

/* A line is "sl: address:port remote:port st tx:rx tr:tm retrnsmt uid timeout inode ...". Returns false where it is
 * another port's, or the head of the table. */
static bool parse_line(const char *line, struct roci_port_holder *holder)
{
	char address[40];
	unsigned port;

	return sscanf(line, " %*u: %39[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*s %u", address, &port, &holder->uid,
		      &holder->inode) == 4 &&
	       port == ROCI_UDP_PORT && parse_address(address, holder->gid);
}

unsigned roci_port_fit(const uint8_t bound[16], const uint8_t gid[16])
{
	bool ipv4 = roci_gid_is_ipv4(gid);

	if (!memcmp(bound, gid, 16))
		return 3;
	if (roci_gid_is_any(bound))
		return ipv4 ? 1 : 2;
	return ipv4 && roci_gid_is_any_ipv4(bound) ? 2 : 0;
}

/* `gid` may be NULL: of every address. Returns false where `see` wants no more. */
static bool read_table(const char *folder, const char *name, const uint8_t *gid, roci_port_holder_fn *see,
		       void *context)
{
	struct roci_port_holder holder;
	char path[256], line[256];
	bool more = true;
	FILE *table;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	table = fopen(path, "re");
	while (more && table && fgets(line, sizeof(line), table))
		if (parse_line(line, &holder) && (!gid || !memcmp(holder.gid, gid, 16)))
			more = see(context, &holder);
	if (table)
		fclose(table);
	return more;
}

/* A socket of IPv6 may receive IPv4 too. */
void roci_port_holders(const uint8_t gid[16], roci_port_holder_fn *see, void *context)
{
	if (!roci_gid_is_ipv4(gid) || read_table(ROCI_PORT_TABLES, "udp", gid, see, context))
		read_table(ROCI_PORT_TABLES, "udp6", gid, see, context);
}

void roci_all_port_holders(const char *folder, roci_port_holder_fn *see, void *context)
{
	if (read_table(folder, "udp", NULL, see, context))
		read_table(folder, "udp6", NULL, see, context);
}

/* A map of all numbers: then those of the namespaces above are all mapped too. */
static bool maps_all(const char *uid_map)
{
	FILE *map = fopen(uid_map, "re");
	unsigned first, count;
	bool all = map && fscanf(map, "%u %*u %u", &first, &count) == 2 && first == 0 && count == ROCI_NO_USER;

	if (map)
		fclose(map);
	return all;
}

uint32_t roci_unmapped_user(const char *uid_map, const char *overflow)
{
	uint32_t uid = 65534;
	FILE *file;

	if (maps_all(uid_map))
		return ROCI_NO_USER;
	file = fopen(overflow, "re");
	if (file && fscanf(file, "%u", &uid) != 1)
		uid = 65534;
	if (file)
		fclose(file);
	return uid;
}
