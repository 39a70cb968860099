/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/chunk_cipher.h"
#include "mover/secure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include "wire/bytes.h"

/* One of each, so that the ClientHello fits into SECURE_HELLO_BYTES. Nobody signs, but TLS asks for an algorithm. */
#define TRIAL_BYTES      (1u << 20)                     /* more than a handshake takes */
#define CIPHER           "TLS_CHACHA20_POLY1305_SHA256" /* its hash is the PSK's */
#define GROUPS           "X25519"
#define SIGNATURES       "ed25519"
#define PSK_NAME         "roci 5" /* in the handshake: one version's secret proves nothing to another version */
#define OPEN_IDENTITY    "open"
#define IDENTITY_HEXES   16
#define MESSAGE_MAX      (64u << 10)
#define SEAL_ROOM        512 /* more than TLS adds to five records */
#define LENGTH_BYTES     4 /* before each message, sealed with it: shows a message that was cut between two TLS records */
#define TOKEN_LABEL      "EXPORTER-rocinante-mover-token"
#define CHUNK_LABEL      "EXPORTER-rocinante-mover-chunk"
#define MAC_LABEL        "EXPORTER-rocinante-mover-mac"
#define IDENTITY_CONTEXT "roci ticket"
#define PROOF_CONTEXT    "roci connect"

struct mover_secure {
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in, *out; /* owned by `ssl` */
	bool sender;
	bool answered; /* sender: the receiver's ClientHello proves the secret, and the first flight is written */
	bool finished;
	uint8_t secret[MOVER_SECRET_BYTES];
	char identity[IDENTITY_HEXES + 1];
	struct chunk_cipher cipher;
	struct give_way *way;
	size_t pad; /* bytes that a record has at least */
	uint8_t message[LENGTH_BYTES + MESSAGE_MAX];
};

void mover_secure_identity(const uint8_t secret[MOVER_SECRET_BYTES], char identity[17])
{
	uint8_t bytes[sizeof(IDENTITY_CONTEXT) - 1 + MOVER_SECRET_BYTES], digest[EVP_MAX_MD_SIZE];

	memcpy(bytes, IDENTITY_CONTEXT, sizeof(IDENTITY_CONTEXT) - 1);
	memcpy(bytes + sizeof(IDENTITY_CONTEXT) - 1, secret, MOVER_SECRET_BYTES);
	identity[0] = 0; /* without memory: a name that nobody has */
	if (EVP_Digest(bytes, sizeof(bytes), digest, NULL, EVP_sha256(), NULL))
		for (int i = 0; i < IDENTITY_HEXES; i++)
			identity[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
	identity[IDENTITY_HEXES] = 0;
	OPENSSL_cleanse(bytes, sizeof(bytes));
}

int mover_secure_proof(const uint8_t secret[MOVER_SECRET_BYTES], uint64_t number, uint8_t proof[SECURE_TOKEN_BYTES])
{
	uint8_t bytes[sizeof(PROOF_CONTEXT) - 1 + 8], digest[EVP_MAX_MD_SIZE];

	memcpy(bytes, PROOF_CONTEXT, sizeof(PROOF_CONTEXT) - 1);
	roci_put_be64(bytes + sizeof(PROOF_CONTEXT) - 1, number);
	if (!HMAC(EVP_sha256(), secret, MOVER_SECRET_BYTES, bytes, sizeof(bytes), digest, NULL)) {
		ERR_clear_error();
		return -ENOMEM;
	}
	memcpy(proof, digest, SECURE_TOKEN_BYTES);
	return 0;
}

/* An external PSK as OpenSSL takes it: a session, whose cipher gives the hash (RFC 8446 s.4.2.11). */
static SSL_SESSION *psk_session(SSL *ssl, const uint8_t secret[MOVER_SECRET_BYTES])
{
	static const unsigned char chacha20_poly1305_sha256[] = {0x13, 0x03};
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, chacha20_poly1305_sha256);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher && SSL_SESSION_set1_master_key(session, secret, MOVER_SECRET_BYTES) &&
	    SSL_SESSION_set_cipher(session, cipher) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int use_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **session)
{
	struct mover_secure *s = SSL_get_app_data(ssl);

	*session = psk_session(ssl, s->secret);
	*id = (const unsigned char *)PSK_NAME;
	*id_len = strlen(PSK_NAME);
	return *session != NULL;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	struct mover_secure *s = SSL_get_app_data(ssl);

	*session = NULL;
	if (id_len != strlen(PSK_NAME) || memcmp(id, PSK_NAME, id_len))
		return 1;
	*session = psk_session(ssl, s->secret);
	return *session != NULL;
}

/* No side has a certificate, and none is accepted. What OpenSSL would put into a ClientHello for TLS 1.2 is left out.
 */
static bool set_up_context(SSL_CTX *ctx, bool sender)
{
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
					 SSL_OP_NO_EXTENDED_MASTER_SECRET | SSL_OP_NO_ENCRYPT_THEN_MAC);
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
	SSL_CTX_set_options(ctx, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
#endif
	SSL_CTX_clear_options(ctx, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (sender)
		SSL_CTX_set_psk_find_session_callback(ctx, find_psk);
	else
		SSL_CTX_set_psk_use_session_callback(ctx, use_psk);
	if (!sender)
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) &&
	       SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) && SSL_CTX_set_ciphersuites(ctx, CIPHER) &&
	       SSL_CTX_set1_groups_list(ctx, GROUPS) && SSL_CTX_set1_sigalgs_list(ctx, SIGNATURES) &&
	       SSL_CTX_set_num_tickets(ctx, 0) && SSL_CTX_set_max_early_data(ctx, 0);
}

static bool set_up_bios(struct mover_secure *s)
{
	s->in = BIO_new(BIO_s_mem());
	s->out = BIO_new(BIO_s_mem());
	if (!s->in || !s->out) {
		BIO_free(s->in);
		BIO_free(s->out);
		return false;
	}
	BIO_set_mem_eof_return(s->in, -1);
	SSL_set_bio(s->ssl, s->in, s->out);
	return true;
}

static struct mover_secure *create(bool sender, const uint8_t secret[MOVER_SECRET_BYTES])
{
	struct mover_secure *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->sender = sender;
	memcpy(s->identity, OPEN_IDENTITY, sizeof(OPEN_IDENTITY));
	if (secret) {
		memcpy(s->secret, secret, sizeof(s->secret));
		mover_secure_identity(secret, s->identity);
	}
	s->ctx = SSL_CTX_new(sender ? TLS_server_method() : TLS_client_method());
	if (!s->ctx || !set_up_context(s->ctx, sender))
		goto err_destroy;
	s->ssl = SSL_new(s->ctx);
	if (!s->ssl || !set_up_bios(s))
		goto err_destroy;
	SSL_set_app_data(s->ssl, s);
	if (sender)
		SSL_set_accept_state(s->ssl);
	else
		SSL_set_connect_state(s->ssl);
	return s;
err_destroy:
	ERR_clear_error();
	mover_secure_destroy(s);
	return NULL;
}

struct mover_secure *mover_secure_sender(const uint8_t secret[MOVER_SECRET_BYTES])
{
	return create(true, secret);
}

struct mover_secure *mover_secure_receiver(const uint8_t secret[MOVER_SECRET_BYTES])
{
	return create(false, secret);
}

void mover_secure_destroy(struct mover_secure *s)
{
	if (!s)
		return;
	chunk_cipher_destroy(&s->cipher);
	SSL_free(s->ssl);
	SSL_CTX_free(s->ctx);
	OPENSSL_cleanse(s, sizeof(*s));
	free(s);
}

/* Errors that mean that the secrets differ: found here, or reported by the peer in an alert. */
static bool means_wrong_secret(unsigned long reason)
{
	switch (ERR_GET_REASON(reason)) {
	case SSL_R_BINDER_DOES_NOT_VERIFY:
	case SSL_R_DIGEST_CHECK_FAILED:
	case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
	case SSL_R_BAD_PSK:
	case SSL_R_CERTIFICATE_VERIFY_FAILED: /* the server does not know the PSK, and sent a certificate */
	case SSL_AD_REASON_OFFSET + SSL_AD_ILLEGAL_PARAMETER:
	case SSL_AD_REASON_OFFSET + SSL_AD_BAD_RECORD_MAC:
	case SSL_AD_REASON_OFFSET + SSL_AD_DECRYPT_ERROR:
	case SSL_AD_REASON_OFFSET + SSL_AD_ACCESS_DENIED:
	case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_PSK_IDENTITY: return true;
	}
	return false;
}

static int handshake_error(void)
{
	unsigned long reason = ERR_peek_error();
	int err = -EPROTO;

	if (ERR_GET_REASON(reason) == ERR_R_MALLOC_FAILURE)
		err = -ENOMEM;
	else if (ERR_GET_LIB(reason) == ERR_LIB_SSL && means_wrong_secret(reason))
		err = -EACCES;
	ERR_clear_error();
	return err;
}

/* OpenSSL does not always tell that an allocation has failed. */
static bool memory_is_left(void)
{
	void *some = OPENSSL_malloc(TRIAL_BYTES);

	OPENSSL_free(some);
	return some;
}

int mover_secure_try(void)
{
	static const uint8_t secret[MOVER_SECRET_BYTES];
	struct mover_secure *receiver = mover_secure_receiver(secret), *sender = mover_secure_sender(secret);
	uint8_t flight[1024], proof[SECURE_TOKEN_BYTES];
	size_t len = 0;
	int finished = 0;

	for (unsigned i = 0; receiver && sender && i < 4; i++) {
		size_t room = i ? sizeof(flight) : SECURE_HELLO_BYTES;

		finished = mover_secure_handshake(i % 2 ? sender : receiver, flight, len, flight, &room);
		if (finished < 0)
			break;
		len = room;
	}
	mover_secure_destroy(receiver);
	mover_secure_destroy(sender);
	if (finished == 1 && mover_secure_proof(secret, 1, proof) == 0)
		return 0;
	return memory_is_left() ? -ENOTSUP : -ENOMEM;
}

static size_t drain(BIO *bio, void *out, size_t room)
{
	int len = room ? BIO_read(bio, out, room > INT32_MAX ? INT32_MAX : (int)room) : 0;

	return len > 0 ? (size_t)len : 0;
}

/* The sender's first step goes as far as its Finished. OpenSSL does that only for a server that asks for early data,
 * and none is allowed; else it would wait for the client's Finished before it seals anything. */
static int answer_hello(struct mover_secure *s)
{
	uint8_t early[1];
	size_t len;
	int result = SSL_read_early_data(s->ssl, early, sizeof(early), &len);

	if (result == SSL_READ_EARLY_DATA_FINISH) {
		s->answered = true;
		return 0;
	}
	if (result != SSL_READ_EARLY_DATA_ERROR)
		return -EPROTO;
	return SSL_get_error(s->ssl, 0) == SSL_ERROR_WANT_READ ? 0 : handshake_error();
}

static int finish_handshake(struct mover_secure *s)
{
	int result = SSL_do_handshake(s->ssl);

	if (result == 1)
		return 1;
	return SSL_get_error(s->ssl, result) == SSL_ERROR_WANT_READ ? 0 : handshake_error();
}

int mover_secure_handshake(struct mover_secure *s, const void *in, size_t in_len, void *out, size_t *out_len)
{
	size_t room = *out_len;
	int err;

	*out_len = 0;
	ERR_clear_error();
	if (in_len > MESSAGE_MAX)
		return -EPROTO;
	if (in_len && BIO_write(s->in, in, (int)in_len) != (int)in_len)
		return -ENOMEM;
	err = s->sender && !s->answered ? answer_hello(s) : finish_handshake(s);
	/* a handshake without the PSK would prove nothing */
	if ((err == 1 || s->answered) && !SSL_session_reused(s->ssl))
		err = -EACCES;
	s->answered &= err >= 0; /* the alert is the last that is sealed */
	s->finished = err == 1;
	if (BIO_ctrl_pending(s->out) > room)
		return -EMSGSIZE;
	*out_len = drain(s->out, out, room);
	return err;
}

bool mover_secure_can_seal(const struct mover_secure *s)
{
	return s->answered || s->finished;
}

static size_t padding(SSL *ssl, int type, size_t len, void *arg)
{
	const struct mover_secure *s = SSL_get_app_data(ssl);

	return len < s->pad ? s->pad - len : 0;
}

void mover_secure_pad(struct mover_secure *s, size_t bytes)
{
	s->pad = bytes;
	if (bytes) /* where it fails, nothing is padded */
		SSL_set_record_padding_callback(s->ssl, padding);
}

static bool write_message(struct mover_secure *s, size_t len)
{
	size_t written;

	if (s->finished)
		return SSL_write_ex(s->ssl, s->message, len, &written) == 1;
	return SSL_write_early_data(s->ssl, s->message, len, &written) == 1 && written == len;
}

int mover_secure_seal(struct mover_secure *s, const void *message, size_t len, void *out, size_t *out_len)
{
	size_t room = *out_len;

	*out_len = 0;
	if (!mover_secure_can_seal(s))
		return -EPROTO;
	if (len > MESSAGE_MAX || room < len + SEAL_ROOM)
		return -EMSGSIZE;
	roci_put_be32(s->message, (uint32_t)len);
	if (len)
		memcpy(s->message + LENGTH_BYTES, message, len);
	ERR_clear_error();
	if (!write_message(s, LENGTH_BYTES + len)) {
		ERR_clear_error();
		return -ENOMEM;
	}
	if (BIO_ctrl_pending(s->out) > room) { /* a part of it would be useless */
		(void)BIO_reset(s->out);
		return -EMSGSIZE;
	}
	*out_len = drain(s->out, out, room);
	return 0;
}

/* Reads all that has come. -EBADMSG unless it is exactly one message. */
static int read_message(struct mover_secure *s)
{
	size_t have = 0;
	int got;

	ERR_clear_error();
	while (have < sizeof(s->message)) {
		got = SSL_read(s->ssl, s->message + have, (int)(sizeof(s->message) - have));
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	/* The peer has made TLS produce an answer (KeyUpdate, RFC 8446 s.4.6.3), or an alert. A mover never asks for
	 * one, and unsent answers would pile up. After this one is dropped the peer cannot read what follows, so the
	 * session is over. */
	if (BIO_ctrl_pending(s->out) || SSL_get_key_update_type(s->ssl) != SSL_KEY_UPDATE_NONE) {
		(void)BIO_reset(s->out);
		ERR_clear_error();
		s->answered = s->finished = false;
		return -EBADMSG;
	}
	if (have < sizeof(s->message) && SSL_get_error(s->ssl, got) != SSL_ERROR_WANT_READ) {
		ERR_clear_error();
		return -EBADMSG;
	}
	/* half a record, or a second message */
	if (BIO_ctrl_pending(s->in) || SSL_has_pending(s->ssl))
		return -EBADMSG;
	return have >= LENGTH_BYTES && roci_get_be32(s->message) == have - LENGTH_BYTES ? 0 : -EBADMSG;
}

int mover_secure_open(struct mover_secure *s, const void *sealed, size_t len, void *out, size_t *out_len)
{
	size_t room = *out_len, message_len;
	int err;

	*out_len = 0;
	if (!s->finished)
		return -EPROTO;
	if (len > 2 * MESSAGE_MAX)
		return -EBADMSG;
	if (len && BIO_write(s->in, sealed, (int)len) != (int)len)
		return -ENOMEM;
	err = read_message(s);
	if (err)
		return err;
	message_len = roci_get_be32(s->message);
	if (message_len > room)
		return -EMSGSIZE;
	memcpy(out, s->message + LENGTH_BYTES, message_len);
	*out_len = message_len;
	return 0;
}

static bool export(struct mover_secure *s, const char *label, uint8_t *out, size_t len)
{
	return SSL_export_keying_material(s->ssl, out, len, label, strlen(label), NULL, 0, 0) == 1;
}

int mover_secure_token(struct mover_secure *s, uint8_t token[SECURE_TOKEN_BYTES])
{
	if (!mover_secure_can_seal(s))
		return -EPROTO;
	return export(s, TOKEN_LABEL, token, SECURE_TOKEN_BYTES) ? 0 : -EPROTO;
}

/* Makes the cipher when the first chunk comes. */
static int prepare_cipher(struct mover_secure *s, bool encrypt)
{
	uint8_t key[CHUNK_CIPHER_KEY_BYTES];
	int err;

	if (chunk_cipher_ready(&s->cipher))
		return 0;
	if (!s->finished || !export(s, encrypt ? CHUNK_LABEL : MAC_LABEL, key, sizeof(key)))
		return -EPROTO;
	err = chunk_cipher_init(&s->cipher, key, encrypt);
	OPENSSL_cleanse(key, sizeof(key));
	return err;
}

void mover_secure_way(struct mover_secure *s, struct give_way *way)
{
	s->way = way;
}

int mover_secure_seal_chunk(struct mover_secure *s, bool encrypt, uint64_t number, uint8_t *data, size_t len)
{
	int err = prepare_cipher(s, encrypt);

	return err ? err : chunk_cipher_seal(&s->cipher, s->way, number, data, len);
}

int mover_secure_open_chunk(struct mover_secure *s, bool encrypt, uint64_t number, uint8_t *data, size_t len)
{
	int err = prepare_cipher(s, encrypt);

	return err ? err : chunk_cipher_open(&s->cipher, s->way, number, data, len);
}

struct ssl_st *mover_secure_tls(struct mover_secure *s)
{
	return s->ssl;
}

bool mover_secure_is_open(const struct mover_secure *s)
{
	return !strcmp(s->identity, OPEN_IDENTITY);
}

const char *mover_secure_ticket_identity(const struct mover_secure *s)
{
	return s->identity;
}
