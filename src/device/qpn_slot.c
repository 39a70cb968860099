/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/qpn_slot.h"

#include <ctype.h>
#include <fcntl.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id" /* a random UUID */

static uint32_t digit(char c)
{
	return (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

void roci_slot_key_read(struct roci_slot_key *key, unsigned long netns)
{
	char text[64];
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text));
	unsigned digits = 0;

	*key = (struct roci_slot_key){{(uint32_t)netns}};
	for (ssize_t i = 0; i < len && digits < 8 * ROCI_SLOT_ROUNDS; i++)
		if (isxdigit((unsigned char)text[i])) {
			key->words[digits / 8] ^= digit(text[i]) << digits % 8 * 4;
			digits++;
		}
	if (fd >= 0)
		close(fd);
}
