/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ssl.h>

#include "mover/chunk_cipher.h"
#include "mover/give_way.h"
#include "mover/secure.h"
#include "random.h"

#define FLIGHT (16u << 10)

/* Two ends, and the bytes between them. The receiver is the TLS client. */
struct pair {
	struct mover_ticket ticket;
	struct mover_secure *receiver, *sender;
	int receiver_rc, sender_rc;
	uint8_t to_sender[FLIGHT], to_receiver[FLIGHT];
	size_t to_sender_len, to_receiver_len;
};

/* The sender's secret; NULL: open. */
static void pair_begin(struct pair *pair, const uint8_t *secret)
{
	pair->receiver = mover_secure_receiver(pair->ticket.secret);
	pair->sender = mover_secure_sender(secret);
	assert_true(pair->receiver && pair->sender);
	pair->receiver_rc = pair->sender_rc = 0;
	pair->to_sender_len = pair->to_receiver_len = 0;
}

/* One flight each way, `piece` bytes at a time. */
static void pair_step(struct pair *pair, size_t piece)
{
	size_t out, at;

	at = 0;
	do {
		size_t n = pair->to_receiver_len - at < piece ? pair->to_receiver_len - at : piece;

		if (pair->receiver_rc)
			break;
		out = FLIGHT - pair->to_sender_len;
		pair->receiver_rc = mover_secure_handshake(pair->receiver, pair->to_receiver + at, n,
							   pair->to_sender + pair->to_sender_len, &out);
		pair->to_sender_len += out;
		at += n;
	} while (at < pair->to_receiver_len);
	pair->to_receiver_len = 0;
	at = 0;
	while (at < pair->to_sender_len && !pair->sender_rc) {
		size_t n = pair->to_sender_len - at < piece ? pair->to_sender_len - at : piece;

		out = FLIGHT - pair->to_receiver_len;
		pair->sender_rc = mover_secure_handshake(pair->sender, pair->to_sender + at, n,
							 pair->to_receiver + pair->to_receiver_len, &out);
		pair->to_receiver_len += out;
		at += n;
	}
	pair->to_sender_len = 0;
}

static void pair_run(struct pair *pair, size_t piece)
{
	for (int i = 0; i < 6; i++)
		pair_step(pair, piece);
}

static void pair_end(struct pair *pair)
{
	mover_secure_destroy(pair->receiver);
	mover_secure_destroy(pair->sender);
}

static struct pair *pair_new(void)
{
	struct pair *pair = test_calloc(1, sizeof(*pair));

	assert_int_equal(mover_ticket_create(&pair->ticket, "host", 1), 0);
	return pair;
}

static void trusted(struct pair *pair)
{
	pair_begin(pair, pair->ticket.secret);
	pair_run(pair, FLIGHT);
	assert_int_equal(pair->receiver_rc, 1);
	assert_int_equal(pair->sender_rc, 1);
}

static void the_secret_opens(void **state)
{
	struct pair *pair = pair_new();
	uint8_t a[SECURE_TOKEN_BYTES], b[SECURE_TOKEN_BYTES], other[SECURE_TOKEN_BYTES];
	char identity[17];

	for (size_t piece = 1; piece <= FLIGHT; piece *= 37) {
		pair_begin(pair, pair->ticket.secret);
		pair_run(pair, piece);
		assert_int_equal(pair->receiver_rc, 1);
		assert_int_equal(pair->sender_rc, 1);
		assert_int_equal(mover_secure_token(pair->receiver, a) | mover_secure_token(pair->sender, b), 0);
		assert_memory_equal(a, b, sizeof(a));
		if (piece > 1)
			assert_memory_not_equal(a, other, sizeof(a)); /* another session, another token */
		memcpy(other, a, sizeof(a));
		mover_secure_identity(pair->ticket.secret, identity);
		assert_string_equal(mover_secure_ticket_identity(pair->sender), identity);
		assert_string_equal(mover_secure_ticket_identity(pair->receiver), identity);
		assert_false(mover_secure_is_open(pair->sender) || mover_secure_is_open(pair->receiver));
		pair_end(pair);
	}
	test_free(pair);
}

/* Without a ticket there is a handshake too, but not with a side that wants the ticket. */
static void open_where_both_are(void **state)
{
	struct pair *pair = pair_new();

	pair_begin(pair, NULL);
	mover_secure_destroy(pair->receiver);
	pair->receiver = mover_secure_receiver(NULL);
	pair_run(pair, FLIGHT);
	assert_int_equal(pair->receiver_rc, 1);
	assert_int_equal(pair->sender_rc, 1);
	assert_true(mover_secure_is_open(pair->sender) && mover_secure_is_open(pair->receiver));
	pair_end(pair);

	pair_begin(pair, NULL);
	pair_run(pair, FLIGHT);
	assert_int_equal(pair->receiver_rc, -EACCES);
	assert_int_equal(pair->sender_rc, -EACCES);
	pair_end(pair);
	test_free(pair);
}

/* HMAC-SHA256, checked against another implementation: Python's hmac. */
static void a_request_proves_the_secret(void **state)
{
	static const uint8_t secret[MOVER_SECRET_BYTES] = "0123456789abcdef",
			     expected[SECURE_TOKEN_BYTES] = {0x1d, 0xca, 0x4b, 0x8e, 0x30, 0x8e, 0x16, 0x78,
							     0xa4, 0x16, 0x9f, 0x8c, 0x94, 0xff, 0x90, 0xd6};
	uint8_t proof[SECURE_TOKEN_BYTES], other[MOVER_SECRET_BYTES];

	assert_int_equal(mover_secure_proof(secret, 0x0102030405060708, proof), 0);
	assert_memory_equal(proof, expected, sizeof(proof));
	assert_int_equal(mover_secure_proof(secret, 0x0102030405060709, proof), 0);
	assert_memory_not_equal(proof, expected, sizeof(proof));
	memcpy(other, secret, sizeof(other));
	other[15] ^= 1;
	assert_int_equal(mover_secure_proof(other, 0x0102030405060708, proof), 0);
	assert_memory_not_equal(proof, expected, sizeof(proof));
}

/* The sender sees it in the ClientHello, and seals nothing. The receiver sees it in the alert. */
static void wrong_secrets_are_told(void **state)
{
	struct pair *pair = pair_new();
	uint8_t wrong[MOVER_SECRET_BYTES], token[SECURE_TOKEN_BYTES];

	memcpy(wrong, pair->ticket.secret, sizeof(wrong));
	wrong[3] ^= 4;
	pair_begin(pair, wrong);
	pair_step(pair, FLIGHT);
	assert_int_equal(pair->sender_rc, -EACCES);
	assert_false(mover_secure_can_seal(pair->sender));
	assert_int_equal(mover_secure_token(pair->sender, token), -EPROTO);
	assert_true(pair->to_receiver_len > 0);
	pair_run(pair, FLIGHT);
	assert_int_equal(pair->receiver_rc, -EACCES);
	pair_end(pair);
	test_free(pair);
}

/* What another version of the protocol proves with the same secret is not believed. */
static void other_versions_prove_nothing(void **state)
{
	struct pair *pair = pair_new();
	size_t len = FLIGHT, room = FLIGHT;
	uint8_t *name;

	pair_begin(pair, pair->ticket.secret);
	assert_int_equal(mover_secure_handshake(pair->receiver, NULL, 0, pair->to_sender, &len), 0);
	name = memmem(pair->to_sender, len, "roci 5", 6);
	assert_non_null(name);
	name[5] = '4';
	assert_int_equal(mover_secure_handshake(pair->sender, pair->to_sender, len, pair->to_receiver, &room), -EPROTO);
	assert_false(mover_secure_can_seal(pair->sender));
	pair_end(pair);
	test_free(pair);
}

/* The answer to a connect request has room for it, and it says how long it is. */
static void the_hello_fits(void **state)
{
	struct pair *pair = pair_new();
	uint8_t hello[SECURE_HELLO_BYTES];

	for (unsigned i = 0; i < 200; i++) {
		struct mover_secure *s = mover_secure_receiver(i % 2 ? pair->ticket.secret : NULL);
		size_t len = sizeof(hello);

		assert_non_null(s);
		assert_int_equal(mover_secure_handshake(s, NULL, 0, hello, &len), 0);
		assert_in_range(len, 100, sizeof(hello));
		assert_int_equal(len, 5 + hello[3] * 256 + hello[4]);
		mover_secure_destroy(s);
		s = mover_secure_receiver(NULL);
		len--;
		assert_int_equal(mover_secure_handshake(s, NULL, 0, hello, &len), -EMSGSIZE);
		assert_int_equal(len, 0);
		mover_secure_destroy(s);
	}
	test_free(pair);
}

/* The sender seals messages right behind its first flight, and makes the token. It believes nothing until the receiver
 * has finished the handshake. */
static void messages_behind_the_first_flight(void **state)
{
	static const size_t lens[] = {0, 1, 100, 16379, 16380, 16384, 20000, 65535, 65536};
	enum { COUNT = sizeof(lens) / sizeof(*lens) };
	static uint8_t message[65536], sealed[COUNT][65536 + 512], opened[65536], data[1024];
	struct pair *pair = pair_new();
	size_t sealed_len[COUNT], len = sizeof(opened);
	uint8_t a[SECURE_TOKEN_BYTES], b[SECURE_TOKEN_BYTES];
	uint64_t seed = 4;

	random_fill(&seed, message, sizeof(message));
	pair_begin(pair, pair->ticket.secret);
	pair_step(pair, FLIGHT);
	assert_int_equal(pair->sender_rc, 0);
	assert_true(mover_secure_can_seal(pair->sender));
	assert_false(mover_secure_can_seal(pair->receiver));
	for (size_t i = 0; i < COUNT; i++) {
		sealed_len[i] = lens[i] + 512;
		assert_int_equal(mover_secure_seal(pair->sender, message, lens[i], sealed[i], &sealed_len[i]), 0);
	}
	assert_int_equal(mover_secure_token(pair->sender, a), 0);
	assert_int_equal(mover_secure_seal_chunk(pair->sender, true, 0, data, 100), -EPROTO);
	assert_int_equal(mover_secure_open(pair->sender, sealed[1], sealed_len[1], opened, &len), -EPROTO);
	assert_int_equal(mover_secure_open(pair->receiver, sealed[0], sealed_len[0], opened, &len), -EPROTO);

	pair_step(pair, FLIGHT);
	assert_int_equal(pair->receiver_rc, 1);
	assert_int_equal(pair->sender_rc, 1);
	assert_int_equal(pair->to_receiver_len, 0);
	for (size_t i = 0; i < COUNT; i++) {
		len = sizeof(opened);
		assert_int_equal(mover_secure_open(pair->receiver, sealed[i], sealed_len[i], opened, &len), 0);
		assert_int_equal(len, lens[i]);
		assert_memory_equal(opened, message, len);
	}
	assert_int_equal(mover_secure_token(pair->receiver, b), 0);
	assert_memory_equal(a, b, sizeof(a));
	assert_int_equal(mover_secure_token(pair->sender, b), 0);
	assert_memory_equal(a, b, sizeof(a));
	pair_end(pair);
	test_free(pair);
}

/* Someone repeats the ClientHello of a receiver: he gets the sender's first flight, and cannot finish. */
static void a_repeated_hello_proves_nothing(void **state)
{
	struct pair *pair = pair_new(), *later = pair_new();
	size_t len = FLIGHT, room = FLIGHT, other = FLIGHT;

	pair_begin(pair, pair->ticket.secret);
	later->ticket = pair->ticket;
	pair_begin(later, later->ticket.secret);
	assert_int_equal(mover_secure_handshake(pair->receiver, NULL, 0, pair->to_sender, &len), 0);
	assert_int_equal(mover_secure_handshake(pair->sender, pair->to_sender, len, pair->to_receiver, &room), 0);
	assert_int_equal(mover_secure_handshake(later->sender, pair->to_sender, len, later->to_receiver, &other), 0);
	len = FLIGHT;
	assert_int_equal(mover_secure_handshake(pair->receiver, pair->to_receiver, room, pair->to_sender, &len), 1);
	room = FLIGHT;
	assert_int_equal(mover_secure_handshake(later->sender, pair->to_sender, len, later->to_receiver, &room),
			 -EACCES);
	pair_end(later);
	pair_end(pair);
	test_free(later);
	test_free(pair);
}

/* A plain TLS 1.3 client (no PSK), a TLS 1.2 one, and noise. */
static void strangers_are_told_apart(void **state)
{
	struct pair *pair = pair_new();
	uint64_t seed = 7;

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
		SSL *ssl = SSL_new(ctx);
		BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
		size_t len, room = FLIGHT;

		SSL_set_min_proto_version(ssl, version);
		SSL_set_max_proto_version(ssl, version);
		SSL_set_bio(ssl, in, out);
		SSL_connect(ssl);
		len = (size_t)BIO_read(out, pair->to_sender, FLIGHT);
		pair_begin(pair, pair->ticket.secret);
		assert_int_equal(mover_secure_handshake(pair->sender, pair->to_sender, len, pair->to_receiver, &room),
				 -EPROTO);
		pair_end(pair);
		SSL_free(ssl);
		SSL_CTX_free(ctx);
	}
	for (int i = 0; i < 100; i++) {
		size_t room = FLIGHT, len = 1 + random_below(&seed, 600);
		int rc;

		random_fill(&seed, pair->to_sender, len);
		if (i % 2) /* a handshake record, at least */
			memcpy(pair->to_sender, "\x16\x03\x01\x00\x40\x01\x00\x00\x3c\x03\x03", 11);
		pair_begin(pair, pair->ticket.secret);
		rc = mover_secure_handshake(pair->sender, pair->to_sender, len, pair->to_receiver, &room);
		assert_true(rc == -EPROTO || rc == 0);
		room = FLIGHT;
		rc = mover_secure_handshake(pair->receiver, pair->to_sender, len, pair->to_receiver, &room);
		assert_true(rc == -EPROTO || rc == -EACCES || rc == 0);
		pair_end(pair);
	}
	test_free(pair);
}

/* Bytes 1 and 2 of the first record's header are a version that is ignored (RFC 8446 s.5.1). */
static size_t any_that_counts(uint64_t *seed, size_t len)
{
	size_t at = random_below(seed, len - 2);

	return at ? at + 2 : 0;
}

/* With any byte of any flight changed, who gets it does not trust the other. */
static void changed_handshakes_fail(void **state)
{
	struct pair *pair = pair_new();
	uint64_t seed = 11;

	for (int i = 0; i < 300; i++) {
		uint8_t change = (uint8_t)(1 + random_below(&seed, 255));
		size_t len = FLIGHT, room = FLIGHT;

		pair_begin(pair, pair->ticket.secret);
		mover_secure_handshake(pair->receiver, NULL, 0, pair->to_sender, &len);
		if (i % 3 == 0)
			pair->to_sender[any_that_counts(&seed, len)] ^= change;
		pair->sender_rc = mover_secure_handshake(pair->sender, pair->to_sender, len, pair->to_receiver, &room);
		if (i % 3 == 1)
			pair->to_receiver[any_that_counts(&seed, room)] ^= change;
		len = FLIGHT;
		pair->receiver_rc =
			mover_secure_handshake(pair->receiver, pair->to_receiver, room, pair->to_sender, &len);
		assert_int_equal(pair->receiver_rc == 1, i % 3 == 2);
		if (i % 3 == 2)
			pair->to_sender[any_that_counts(&seed, len)] ^= change;
		room = FLIGHT;
		if (pair->sender_rc == 0)
			pair->sender_rc =
				mover_secure_handshake(pair->sender, pair->to_sender, len, pair->to_receiver, &room);
		assert_int_not_equal(pair->sender_rc, 1);
		if (pair->sender_rc < 0)
			assert_false(mover_secure_can_seal(pair->sender));
		pair_end(pair);
	}
	test_free(pair);
}

static void messages_in_order(void **state)
{
	static const size_t lens[] = {0, 1, 100, 16379, 16380, 16384, 20000, 65535, 65536};
	struct pair *pair = pair_new();
	uint8_t *message = test_malloc(65536), *sealed = test_malloc(65536 + 512), *opened = test_malloc(65536);
	uint64_t seed = 3;

	trusted(pair);
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
			struct mover_secure *from = turn ? pair->sender : pair->receiver;
			struct mover_secure *to = turn ? pair->receiver : pair->sender;
			size_t sealed_len = lens[i] + 512, opened_len = 65536;

			random_fill(&seed, message, lens[i]);
			assert_int_equal(mover_secure_seal(from, message, lens[i], sealed, &sealed_len), 0);
			assert_int_equal(mover_secure_open(to, sealed, sealed_len, opened, &opened_len), 0);
			assert_int_equal(opened_len, lens[i]);
			assert_memory_equal(opened, message, lens[i]);
		}
	{
		size_t len = 65536 + 512;

		assert_int_equal(mover_secure_seal(pair->receiver, message, 65537, sealed, &len), -EMSGSIZE);
		len = 611;
		assert_int_equal(mover_secure_seal(pair->receiver, message, 100, sealed, &len), -EMSGSIZE);
		len = 612;
		assert_int_equal(mover_secure_seal(pair->receiver, message, 100, sealed, &len), 0);
	}
	pair_end(pair);
	test_free(message);
	test_free(sealed);
	test_free(opened);
	test_free(pair);
}

/* Padding is for the message that is sealed next, before the end of the handshake as behind it. */
static void a_padded_message_is_the_same(void **state)
{
	static const size_t lens[] = {0, 1, 100, 10996, 11000, 16384, 60000};
	enum { COUNT = sizeof(lens) / sizeof(*lens), PAD = 11000 };
	static uint8_t message[65536], sealed[2 * COUNT][65536 + 512], opened[65536];
	struct pair *pair = pair_new();
	size_t sealed_len[2 * COUNT], len;
	uint64_t seed = 5;

	random_fill(&seed, message, sizeof(message));
	pair_begin(pair, pair->ticket.secret);
	pair_step(pair, FLIGHT);
	for (size_t i = 0; i < 2 * COUNT; i++) {
		bool padded = i < COUNT;

		if (i == COUNT)
			pair_step(pair, FLIGHT);
		mover_secure_pad(pair->sender, padded ? PAD : 0);
		sealed_len[i] = sizeof(sealed[i]);
		assert_int_equal(mover_secure_seal(pair->sender, message, lens[i % COUNT], sealed[i], &sealed_len[i]),
				 0);
		if (padded)
			assert_in_range(sealed_len[i], PAD, lens[i] + PAD + 512);
		else
			assert_true(sealed_len[i] < lens[i % COUNT] + 512);
	}
	assert_int_equal(pair->receiver_rc, 1);
	for (size_t i = 0; i < 2 * COUNT; i++) {
		len = sizeof(opened);
		assert_int_equal(mover_secure_open(pair->receiver, sealed[i], sealed_len[i], opened, &len), 0);
		assert_int_equal(len, lens[i % COUNT]);
		assert_memory_equal(opened, message, len);
	}
	pair_end(pair);
	test_free(pair);
}

enum attack { CHANGE, REPEAT, LEAVE_OUT, CUT, SPLIT, JOIN, REFLECT, CLOSE, ATTACKS };

static void messages_attacked(void **state)
{
	static uint8_t message[40000], one[sizeof(message) + 512], two[sizeof(message) + 512], opened[65536];

	for (int attack = 0; attack < ATTACKS; attack++) {
		struct pair *pair = pair_new();
		size_t one_len = sizeof(one), two_len = sizeof(one), len = sizeof(opened);
		int rc = 0;

		trusted(pair);
		assert_int_equal(mover_secure_seal(pair->receiver, message, sizeof(message), one, &one_len), 0);
		assert_int_equal(mover_secure_seal(pair->receiver, message, 10, two, &two_len), 0);
		switch ((enum attack)attack) {
		case CHANGE:
			one[one_len / 2] ^= 1;
			rc = mover_secure_open(pair->sender, one, one_len, opened, &len);
			break;
		case REPEAT:
			assert_int_equal(mover_secure_open(pair->sender, one, one_len, opened, &len), 0);
			len = sizeof(opened);
			rc = mover_secure_open(pair->sender, one, one_len, opened, &len);
			break;
		case LEAVE_OUT: rc = mover_secure_open(pair->sender, two, two_len, opened, &len); break;
		case CUT: rc = mover_secure_open(pair->sender, one, one_len - 1, opened, &len); break;
		case SPLIT: /* after the first TLS record */
			rc = mover_secure_open(pair->sender, one, 16384 + 22, opened, &len);
			break;
		case JOIN:
			memcpy(one + one_len, two, two_len);
			rc = mover_secure_open(pair->sender, one, one_len + two_len, opened, &len);
			break;
		case REFLECT: rc = mover_secure_open(pair->receiver, one, one_len, opened, &len); break;
		case CLOSE: rc = mover_secure_open(pair->sender, "", 0, opened, &len); break;
		case ATTACKS: break;
		}
		assert_int_equal(rc, -EBADMSG);
		pair_end(pair);
		test_free(pair);
	}
}

/* A message after as many KeyUpdates as fit, each of which asks for an answer (RFC 8446 s.4.6.3): opening
 * it fails, and what TLS would answer neither piles up nor gets into a later message. */
static void keys_stay_as_they_are(void **state)
{
	static const unsigned updates[] = {1, 2400};
	static uint8_t sealed[65536], opened[65536];

	for (int i = 0; i < 4; i++) {
		struct pair *pair = pair_new();
		struct mover_secure *from, *to;
		size_t len = sizeof(sealed), opened_len = sizeof(opened);

		trusted(pair);
		from = i % 2 ? pair->sender : pair->receiver;
		to = i % 2 ? pair->receiver : pair->sender;
		for (unsigned k = 0; k < updates[i / 2]; k++) {
			assert_int_equal(SSL_key_update(mover_secure_tls(from), SSL_KEY_UPDATE_REQUESTED), 1);
			assert_int_equal(SSL_do_handshake(mover_secure_tls(from)), 1);
		}
		assert_int_equal(mover_secure_seal(from, "x", 1, sealed, &len), 0);
		assert_true(len >= updates[i / 2] * 27);
		assert_int_equal(mover_secure_open(to, sealed, len, opened, &opened_len), -EBADMSG);
		assert_int_equal(opened_len, 0);
		len = 1024;
		assert_true(mover_secure_seal(to, "y", 1, sealed, &len) < 0);
		assert_int_equal(len, 0);
		pair_end(pair);
		test_free(pair);
	}
}

static void protect_chunks(bool encrypt)
{
	static const size_t lens[] = {0, 1, 15, 16, 65536, 1 << 20};
	struct pair *pair = pair_new();
	uint8_t *data = test_malloc((1 << 20) + CHUNK_CIPHER_TAG_BYTES), *plain = test_malloc(1 << 20);
	uint64_t seed = 5;

	trusted(pair);
	random_fill(&seed, plain, 1 << 20);
	for (uint64_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		uint64_t number = i << 60 | i;
		size_t len = lens[i];

		memcpy(data, plain, len);
		assert_int_equal(mover_secure_seal_chunk(pair->receiver, encrypt, number, data, len), 0);
		if (len > 15)
			assert_int_equal(memcmp(data, plain, len) != 0, encrypt);
		assert_int_equal(mover_secure_open_chunk(pair->sender, encrypt, number, data, len), 0);
		assert_memory_equal(data, plain, len);

		assert_int_equal(mover_secure_seal_chunk(pair->receiver, encrypt, number, data, len), 0);
		assert_int_equal(mover_secure_open_chunk(pair->sender, encrypt, number + 1, data, len), -EBADMSG);
		memcpy(data, plain, len);
		assert_int_equal(mover_secure_seal_chunk(pair->receiver, encrypt, number, data, len), 0);
		data[random_below(&seed, len + CHUNK_CIPHER_TAG_BYTES)] ^= 1;
		assert_int_equal(mover_secure_open_chunk(pair->sender, encrypt, number, data, len), -EBADMSG);
	}
	pair_end(pair);
	test_free(data);
	test_free(plain);
	test_free(pair);
}

static void encrypted_chunks(void **state)
{
	protect_chunks(true);
}

/* Content in the clear, that nobody can change. */
static void authenticated_chunks(void **state)
{
	protect_chunks(false);
}

static void nothing_before_the_handshake(void **state)
{
	uint8_t token[SECURE_TOKEN_BYTES], bytes[1024];

	for (int i = 0; i < 2; i++) {
		struct mover_secure *s = i ? mover_secure_sender(NULL) : mover_secure_receiver(NULL);
		size_t len = sizeof(bytes);

		assert_false(mover_secure_can_seal(s));
		assert_int_equal(mover_secure_token(s, token), -EPROTO);
		assert_int_equal(mover_secure_seal(s, "x", 1, bytes, &len), -EPROTO);
		len = sizeof(bytes);
		assert_int_equal(mover_secure_open(s, "x", 1, bytes, &len), -EPROTO);
		assert_int_not_equal(mover_secure_seal_chunk(s, true, 0, bytes, 16), 0);
		mover_secure_destroy(s);
	}
	mover_secure_destroy(NULL);
}

/* The memory that OpenSSL gets: after so many more allocations there is none. Negative: as much as it wants. */
static long allocations = -1;

static bool has_memory(void)
{
	if (allocations > 0)
		allocations--;
	return allocations != 0;
}

static void *try_malloc(size_t size, const char *file, int line)
{
	return has_memory() ? malloc(size) : NULL;
}

static void *try_realloc(void *old, size_t size, const char *file, int line)
{
	return has_memory() ? realloc(old, size) : NULL;
}

static void plain_free(void *old, const char *file, int line)
{
	free(old);
}

/* Wherever memory ends, that is what is told, and not that OpenSSL is configured without something. */
static void memory_ends(void **state)
{
	long count = 1;

	assert_int_equal(mover_secure_try(), 0); /* what OpenSSL loads once */
	for (int err = -ENOMEM; err; count += 1 + count / 8) {
		allocations = count;
		err = mover_secure_try();
		allocations = -1;
		if (err)
			assert_int_equal(err, -ENOMEM);
	}
	assert_true(count > 100);
}

static unsigned gave;
static const struct give_way *asked;

void __wrap_give_way(struct give_way *g);
void __wrap_give_way(struct give_way *g)
{
	gave++;
	asked = g;
}

static void chunks_give_way_to_others(void **state)
{
	struct pair *pair = pair_new();
	size_t len = 1 << 20;
	uint8_t *bytes = test_calloc(1, len + CHUNK_CIPHER_TAG_BYTES);
	struct give_way way = {0};

	trusted(pair);
	mover_secure_way(pair->receiver, &way);
	assert_int_equal(mover_secure_seal_chunk(pair->receiver, true, 1, bytes, len), 0);
	assert_true(gave > 1);
	assert_ptr_equal(asked, &way);
	gave = 0;
	assert_int_equal(mover_secure_open_chunk(pair->sender, true, 1, bytes, len), 0);
	assert_int_equal(gave, 0);
	mover_secure_way(pair->sender, &way); /* later than the first chunk */
	mover_secure_way(pair->receiver, NULL);
	assert_int_equal(mover_secure_seal_chunk(pair->receiver, true, 2, bytes, len), 0);
	assert_int_equal(gave, 0);
	assert_int_equal(mover_secure_open_chunk(pair->sender, true, 2, bytes, len), 0);
	assert_true(gave > 1);
	pair_end(pair);
	test_free(bytes);
	test_free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_ends),
		cmocka_unit_test(the_secret_opens),
		cmocka_unit_test(open_where_both_are),
		cmocka_unit_test(a_request_proves_the_secret),
		cmocka_unit_test(wrong_secrets_are_told),
		cmocka_unit_test(other_versions_prove_nothing),
		cmocka_unit_test(the_hello_fits),
		cmocka_unit_test(messages_behind_the_first_flight),
		cmocka_unit_test(a_repeated_hello_proves_nothing),
		cmocka_unit_test(strangers_are_told_apart),
		cmocka_unit_test(changed_handshakes_fail),
		cmocka_unit_test(messages_in_order),
		cmocka_unit_test(a_padded_message_is_the_same),
		cmocka_unit_test(messages_attacked),
		cmocka_unit_test(keys_stay_as_they_are),
		cmocka_unit_test(encrypted_chunks),
		cmocka_unit_test(authenticated_chunks),
		cmocka_unit_test(nothing_before_the_handshake),
		cmocka_unit_test(chunks_give_way_to_others),
	};

	assert_int_equal(CRYPTO_set_mem_functions(try_malloc, try_realloc, plain_free), 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
