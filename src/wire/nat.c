/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/nat.h"

#include <sodium/crypto_shorthash.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/packet.h"

#define VERSION      1
#define PERIOD_SHIFT 36 /* 2^36 ns: 69 seconds */

/* Where the fields are. */
#define ID_AT        4
#define TOKEN_AT     8
#define COOKIE_AT    16
#define ADDRESS_AT   24
#define DST_AT       40 /* HELLO */
#define SEEN_PORT_AT 40 /* CHALLENGE */

void roci_hello_build(const struct roci_hello *h, uint8_t payload[ROCI_HELLO_BYTES])
{
	memset(payload, 0, ROCI_HELLO_BYTES);
	payload[0] = VERSION;
	roci_put_be64(payload + TOKEN_AT, h->token);
	roci_put_be64(payload + COOKIE_AT, h->cookie);
	memcpy(payload + ADDRESS_AT, h->src, 16);
	memcpy(payload + DST_AT, h->dst, 16);
}

static bool is_host(const uint8_t gid[16])
{
	return !roci_gid_is_any(gid) && !roci_gid_is_any_ipv4(gid) && !roci_gid_is_multicast(gid);
}

bool roci_hello_parse(const uint8_t *payload, uint32_t len, struct roci_hello *h)
{
	if ((len != ROCI_HELLO_BYTES && len != ROCI_HELLO_BYTES + ROCI_HELLO_MAD_BYTES) || payload[0] != VERSION)
		return false;
	h->token = roci_get_be64(payload + TOKEN_AT);
	h->cookie = roci_get_be64(payload + COOKIE_AT);
	memcpy(h->src, payload + ADDRESS_AT, 16);
	memcpy(h->dst, payload + DST_AT, 16);
	h->mad = len > ROCI_HELLO_BYTES ? payload + ROCI_HELLO_BYTES : NULL;
	return is_host(h->src) && is_host(h->dst) && roci_gid_is_ipv4(h->src) == roci_gid_is_ipv4(h->dst);
}

void roci_challenge_build(const struct roci_challenge *c, uint8_t payload[ROCI_CHALLENGE_BYTES])
{
	memset(payload, 0, ROCI_CHALLENGE_BYTES);
	payload[0] = VERSION;
	roci_put_be32(payload + ID_AT, c->id);
	roci_put_be64(payload + TOKEN_AT, c->token);
	roci_put_be64(payload + COOKIE_AT, c->cookie);
	memcpy(payload + ADDRESS_AT, c->seen, 16);
	roci_put_be16(payload + SEEN_PORT_AT, c->seen_port);
}

bool roci_challenge_parse(const uint8_t *payload, uint32_t len, struct roci_challenge *c)
{
	if (len != ROCI_CHALLENGE_BYTES || payload[0] != VERSION)
		return false;
	c->id = roci_get_be32(payload + ID_AT);
	c->token = roci_get_be64(payload + TOKEN_AT);
	c->cookie = roci_get_be64(payload + COOKIE_AT);
	memcpy(c->seen, payload + ADDRESS_AT, 16);
	c->seen_port = roci_get_be16(payload + SEEN_PORT_AT);
	return c->cookie;
}

void roci_nat_flow(struct roci_flow *flow, const uint8_t src[16], const uint8_t dst[16])
{
	memcpy(flow->src, src, 16);
	memcpy(flow->dst, dst, 16);
	flow->src_port = flow->dst_port = ROCI_UDP_PORT;
}

static uint64_t cookie_of(const struct roci_nat_key *key, uint64_t period, const uint8_t gid[16], uint16_t port)
{
	uint8_t bytes[26], hash[crypto_shorthash_BYTES];
	uint64_t cookie;

	memcpy(bytes, gid, 16);
	roci_put_be16(bytes + 16, port);
	roci_put_be64(bytes + 18, period);
	crypto_shorthash(hash, bytes, sizeof(bytes), key->bytes);
	cookie = roci_get_be64(hash);
	return cookie ? cookie : 1;
}

uint64_t roci_nat_cookie(const struct roci_nat_key *key, uint64_t now, const uint8_t gid[16], uint16_t port)
{
	return cookie_of(key, now >> PERIOD_SHIFT, gid, port);
}

bool roci_nat_cookie_is(const struct roci_nat_key *key, uint64_t now, const uint8_t gid[16], uint16_t port,
			uint64_t cookie)
{
	uint64_t period = now >> PERIOD_SHIFT;

	return cookie &&
	       (cookie == cookie_of(key, period, gid, port) || cookie == cookie_of(key, period - 1, gid, port));
}
