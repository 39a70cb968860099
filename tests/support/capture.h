/* SPDX-License-Identifier: BSD-2-Clause */
/* The RoCEv2 packets of a directory of captures (tests/captures), read into memory. */
#ifndef ROCI_TESTS_CAPTURE_H
#define ROCI_TESTS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/icrc.h"

struct capture_packet {
	const char *file; /* name without directory */
	unsigned frame;   /* its number in the file, from 1, as tshark counts */
	bool ipv4;
	uint16_t ip_id; /* host byte order; 0 for IPv6 */
	struct roci_flow flow;
	const uint8_t *ip;    /* IP header, then UDP header, then `bytes` */
	size_t ip_len;        /* bytes of the IP header */
	const uint8_t *bytes; /* UDP payload: BTH to ICRC */
	size_t len;
};

struct captures {
	struct capture_packet *packets;
	size_t count;
	char **names; /* of the files. All memory is owned */
	size_t name_count;
};

/* Reads all *.pcap files of `dir`; NULL: of $ROCI_CAPTURES. False, after a message on stderr: there is nothing to
 * read. */
bool captures_load(struct captures *set, const char *dir);
void captures_free(struct captures *set);

#endif
