/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture.h"

#include <glob.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/packet.h"

#define ETHERNET_BYTES 14
#define UDP_BYTES      8

/* Decodes the IP header: addresses, identification, its length. False: this is not UDP over IP. */
static bool decode_ip(struct capture_packet *packet, uint16_t ethertype, size_t len)
{
	const uint8_t *ip = packet->ip;

	if (ethertype == 0x0800 && len >= 20 + UDP_BYTES && ip[0] == 0x45 && ip[9] == 17) {
		packet->ipv4 = true;
		packet->ip_len = 20;
		packet->ip_id = roci_get_be16(ip + 4);
		roci_gid_from_ipv4(packet->flow.src, ip + 12);
		roci_gid_from_ipv4(packet->flow.dst, ip + 16);
		return true;
	}
	if (ethertype == 0x86dd && len >= 40 + UDP_BYTES && ip[6] == 17) {
		packet->ip_len = 40;
		memcpy(packet->flow.src, ip + 8, 16);
		memcpy(packet->flow.dst, ip + 24, 16);
		return true;
	}
	return false;
}

/* Fills *packet from an Ethernet frame. False: it is not RoCEv2. The packet points into `frame`. */
static bool decode_frame(struct capture_packet *packet, const uint8_t *frame, size_t len)
{
	const uint8_t *udp;
	size_t udp_len;

	memset(packet, 0, sizeof(*packet));
	if (len < ETHERNET_BYTES)
		return false;
	packet->ip = frame + ETHERNET_BYTES;
	len -= ETHERNET_BYTES;
	if (!decode_ip(packet, roci_get_be16(frame + 12), len))
		return false;
	udp = packet->ip + packet->ip_len;
	udp_len = roci_get_be16(udp + 4);
	packet->flow.src_port = roci_get_be16(udp);
	packet->flow.dst_port = roci_get_be16(udp + 2);
	if (packet->flow.dst_port != ROCI_UDP_PORT || udp_len < UDP_BYTES || packet->ip_len + udp_len > len)
		return false;
	packet->bytes = udp + UDP_BYTES;
	packet->len = udp_len - UDP_BYTES;
	return true;
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static bool load_file(struct captures *set, const char *path)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline(path, error);
	struct pcap_pkthdr *header;
	const uint8_t *bytes;
	const char *slash = strrchr(path, '/');
	char *name = must(strdup(slash ? slash + 1 : path));

	set->names = must(reallocarray(set->names, set->name_count + 1, sizeof(*set->names)));
	set->names[set->name_count++] = name;
	if (!pcap) {
		fprintf(stderr, "%s\n", error);
		return false;
	}
	for (unsigned frame = 1; pcap_next_ex(pcap, &header, &bytes) == 1; frame++) {
		uint8_t *copy = must(malloc(header->caplen + 1));
		struct capture_packet packet;

		memcpy(copy, bytes, header->caplen);
		if (!decode_frame(&packet, copy, header->caplen)) {
			free(copy);
			continue;
		}
		packet.file = name;
		packet.frame = frame;
		set->packets = must(reallocarray(set->packets, set->count + 1, sizeof(*set->packets)));
		set->packets[set->count++] = packet;
	}
	pcap_close(pcap);
	return true;
}

bool captures_load(struct captures *set, const char *dir)
{
	char pattern[4096];
	glob_t found;
	bool ok = true;

	memset(set, 0, sizeof(*set));
	if (!dir)
		dir = getenv("ROCI_CAPTURES");
	if (!dir) {
		fprintf(stderr, "ROCI_CAPTURES must name the directory of captures\n");
		return false;
	}
	snprintf(pattern, sizeof(pattern), "%s/*.pcap", dir);
	if (glob(pattern, 0, NULL, &found)) {
		fprintf(stderr, "no captures: %s\n", pattern);
		return false;
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		ok = load_file(set, found.gl_pathv[i]) && ok;
	globfree(&found);
	return ok && set->count > 0;
}

void captures_free(struct captures *set)
{
	for (size_t i = 0; i < set->count; i++)
		free((uint8_t *)(uintptr_t)set->packets[i].ip - ETHERNET_BYTES);
	for (size_t i = 0; i < set->name_count; i++)
		free(set->names[i]);
	free(set->packets);
	free(set->names);
}
