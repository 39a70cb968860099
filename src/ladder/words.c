/* SPDX-License-Identifier: BSD-2-Clause */
/* What people read: names, times, sizes, and the sentences of events. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "capture/record_names.h"
#include "ladder/store.h"
#include "wire/gid.h"
#include "wire/plural.h"

unsigned ladder_utf8_len(const unsigned char *text)
{
	unsigned len = text[0] < 0x80 ? 1 : text[0] >= 0xc2 && text[0] < 0xe0 ? 2 : (text[0] & 0xf0) == 0xe0 ? 3 : 0;

	if (text[0] >= 0xf0 && text[0] < 0xf5)
		len = 4;
	for (unsigned i = 1; i < len; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	if (text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe)
		return 0; /* U+FFFE and U+FFFF, which XML has not */
	return len;
}

const char *ladder_size(char text[LADDER_SIZE_CHARS], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	unsigned unit = 0;
	double n = (double)bytes;

	while (n >= 1024 && unit < 3 && (bytes % 1024 == 0 || n >= 10240)) {
		n /= 1024;
		unit++;
	}
	snprintf(text, LADDER_SIZE_CHARS, n == (double)(uint64_t)n ? "%.0f %s" : "%.1f %s", n, units[unit]);
	return text;
}

const char *ladder_time(char text[LADDER_TIME_CHARS], uint64_t ns)
{
	if (ns < 1000000)
		snprintf(text, LADDER_TIME_CHARS, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(text, LADDER_TIME_CHARS, "%.3f ms", (double)ns / 1e6);
	else
		snprintf(text, LADDER_TIME_CHARS, "%.6f s", (double)ns / 1e9);
	return text;
}

const char *ladder_gid(char text[LADDER_GID_CHARS], const uint8_t gid[16])
{
	bool ipv4 = roci_gid_is_ipv4(gid);

	if (!inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, text, LADDER_GID_CHARS))
		text[0] = 0;
	return text;
}

const char *ladder_kind_name(enum roci_kind kind)
{
	switch (kind) {
	case ROCI_KIND_SEND: return "SEND";
	case ROCI_KIND_WRITE: return "WRITE";
	case ROCI_KIND_READ_REQUEST:
	case ROCI_KIND_READ_RESPONSE: return "READ";
	case ROCI_KIND_ATOMIC:
	case ROCI_KIND_ATOMIC_ACK: return "atomic";
	case ROCI_KIND_ATOMIC_WRITE: return "ATOMIC WRITE";
	case ROCI_KIND_FLUSH: return "FLUSH";
	default: return "message";
	}
}

const char *ladder_packet_name(const struct ladder *l, const struct ladder_packet *p)
{
	const struct roci_opcode_info *op = roci_opcode_info(p->opcode);
	const char *name = op ? op->name : "unknown opcode";

	if (p->flags & (LADDER_CM | LADDER_ACK))
		return ladder_text(l, p->meaning);
	if (!strncmp(name, "RC ", 3) || !strncmp(name, "UC ", 3) || !strncmp(name, "UD ", 3))
		name += 3;
	return strncmp(name, "RDMA ", 5) ? name : name + 5;
}

bool ladder_note(const struct ladder *l, unsigned which, char text[LADDER_NOTE_CHARS])
{
	text[0] = 0;
	if (l->left_out && !which--)
		snprintf(text, LADDER_NOTE_CHARS, "Left out: %" PRIu64 " packet%s after the first %zu (--max-packets).",
			 l->left_out, roci_plural(l->left_out), l->packet_count);
	else if (l->crowd && !which--)
		snprintf(text, LADDER_NOTE_CHARS,
			 "Left out: %" PRIu64 " packet%s of other pairs of QPs than the first %u.", l->crowd,
			 roci_plural(l->crowd), LADDER_PAIRS_MAX);
	else if (l->no_rdma && !which--)
		snprintf(text, LADDER_NOTE_CHARS,
			 "Left out: %" PRIu64 " packet%s no RoCEv2, or nobody's; roci dump shows what there is.",
			 l->no_rdma, l->no_rdma == 1 ? " that is" : "s that are");
	return text[0];
}

/* ---- explanations ---- */

static size_t add_list(char *text, size_t size, size_t len, const char *title, const char *const *lines)
{
	if (lines[0] && len < size)
		len += (size_t)snprintf(text + len, size - len, "\n\n%s", title);
	for (unsigned i = 0; lines[i] && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "\n• %s", lines[i]);
	return len;
}

int ladder_explain(struct ladder *l, const struct explanation *e)
{
	char text[4096], word[EXPLAIN_WORD_CHARS];
	size_t len;
	ladder_text_t at;

	if (!e)
		return 0;
	len = (size_t)snprintf(text, sizeof(text), "%s: %s.\n%s\n\nWhere to look: %s.", e->name, e->title, e->meaning,
			       e->look);
	len = add_list(text, sizeof(text), len, "Likely causes:", e->causes);
	len = add_list(text, sizeof(text), len, "What to try:", e->steps);
	if (len < sizeof(text))
		snprintf(text + len, sizeof(text) - len, "\n\nMore: roci explain %s", explain_word(e, word));
	for (size_t i = 1; i < l->explanation_count; i++)
		if (!strcmp(ladder_text(l, l->explanations[i]), text))
			return (int)i;
	at = ladder_print(l, "%s", text);
	if (!LADDER_GROW(l, explanations, explanation))
		return 0;
	l->explanations[l->explanation_count] = at;
	return (int)l->explanation_count++;
}

/* ---- events ---- */

/* "wr_id 5", "wr_id 0x100000000", "wr_id 1 to 8" */
static ladder_text_t wr_id(struct ladder *l, const struct ladder_event *e)
{
	uint64_t first = e->record.wr_id, last = e->last_wr_id;
	bool large = first > UINT32_MAX;

	if (e->count == 1)
		return ladder_print(l, large ? "wr_id 0x%" PRIx64 : "wr_id %" PRIu64, first);
	return ladder_print(l, large ? "wr_id 0x%" PRIx64 " to 0x%" PRIx64 : "wr_id %" PRIu64 " to %" PRIu64, first,
			    last);
}

static void word_post(struct ladder *l, struct ladder_event *e)
{
	const struct roci_record *r = &e->record;
	char size[LADDER_SIZE_CHARS];

	ladder_size(size, r->length);
	if (e->kind == LADDER_POST_SEND)
		e->text = ladder_print(l, "post %s  %s", capture_post_name(r->opcode), r->length ? size : "");
	else if (e->count == 1)
		e->text = ladder_print(l, "post receive  %s", size);
	else
		e->text = ladder_print(l, "post %u receives  %s each", e->count, size);
	e->id = wr_id(l, e);
	if (e->kind != LADDER_POST_SEND) {
		e->fields = ladder_print(l, "QP=0x%06x;%s=%u;wr_id=%" PRIu64 ";room=%" PRIu64 " B", r->qpn,
					 r->kind == ROCI_RECORD_POST_SRQ ? "SRQ" : "CQ", r->queue, r->wr_id, r->length);
		return;
	}
	e->fields = ladder_print(l,
				 "QP=0x%06x;to QP=0x%06x;CQ=%u;wr_id=%" PRIu64 " (0x%" PRIx64 ");length=%" PRIu64
				 " B;signaled=%s;solicited=%s;fence=%s;inline=%s;remote address=0x%" PRIx64
				 ";R_Key=0x%08x;immediate or key=0x%08x",
				 r->qpn, r->peer, r->queue, r->wr_id, r->wr_id, r->length,
				 r->flags & IBV_SEND_SIGNALED ? "yes" : "no",
				 r->flags & IBV_SEND_SOLICITED ? "yes" : "no", r->flags & IBV_SEND_FENCE ? "yes" : "no",
				 r->flags & IBV_SEND_INLINE ? "yes" : "no", r->remote_addr, r->rkey, ntohl(r->imm));
}

static void word_completion(struct ladder *l, struct ladder_event *e)
{
	const struct roci_record *r = &e->record;
	const struct explanation *why = r->status ? explain_wc_status((int)r->status) : NULL;
	const char *name = capture_completion_name(r->opcode), *status = why         ? why->name
									 : r->status ? "unknown status"
										     : "IBV_WC_SUCCESS";
	char size[LADDER_SIZE_CHARS];

	if (!r->status)
		e->text = ladder_print(l, "%s done  %s", name, r->length ? ladder_size(size, r->length) : "");
	else if (r->status == IBV_WC_WR_FLUSH_ERR && e->count > 1)
		e->text = ladder_print(l, "%u × %s: FLUSH", e->count, name);
	else
		e->text = ladder_print(l, "%s: %s", name, strncmp(status, "IBV_WC_", 7) ? status : status + 7);
	e->severity = !r->status ? LADDER_GOOD : r->status == IBV_WC_WR_FLUSH_ERR ? LADDER_NOTE : LADDER_ERROR;
	e->explanation = ladder_explain(l, why);
	e->id = wr_id(l, e);
	e->fields = ladder_print(l,
				 "status=%s (%u);opcode=%u (%s);QP=0x%06x;CQ=%u;wr_id=%" PRIu64 " (0x%" PRIx64
				 ");length=%" PRIu64 " B;%s=0x%08x",
				 status, r->status, r->opcode, name, r->qpn, r->queue, r->wr_id, r->wr_id, r->length,
				 r->flags & IBV_WC_WITH_IMM ? "immediate data" : "immediate or key", ntohl(r->imm));
}

static void word_state(struct ladder *l, struct ladder_event *e)
{
	const struct roci_record *r = &e->record;

	e->text = ladder_print(l, "QP → %s", capture_qp_state_name(r->status));
	e->id = ladder_print(l, "QP 0x%06x", r->qpn);
	e->severity = r->status == IBV_QPS_ERR ? LADDER_NOTE : LADDER_GOOD;
	e->explanation = ladder_explain(l, explain_code(EXPLAIN_QP_STATE, (int)r->status));
	e->fields = ladder_print(l, "QP=0x%06x;connected to QP=0x%06x;state=%s;path MTU=%" PRIu64 " B", r->qpn, r->peer,
				 capture_qp_state_name(r->status), r->length);
}

static void word_connection(struct ladder *l, struct ladder_event *e)
{
	const struct roci_record *r = &e->record;
	bool rejected = r->opcode == 3, error = (int32_t)r->status < 0;
	const struct explanation *why = rejected ? explain_code(EXPLAIN_CM_REJECT, (int)r->status)
					: error  ? explain_code(EXPLAIN_ERRNO, -(int32_t)r->status)
						 : NULL;

	e->text = ladder_print(l, "event: %s", capture_cm_event_name(r->opcode));
	e->severity = rejected || error ? LADDER_ERROR : LADDER_GOOD;
	e->explanation = ladder_explain(l, why);
	e->fields =
		ladder_print(l, "event=%s;%s=%d%s%s", capture_cm_event_name(r->opcode), rejected ? "reason" : "status",
			     (int32_t)r->status, why ? " " : "", why ? why->name : "");
}

static void word_fault(struct ladder *l, struct ladder_event *e)
{
	const struct roci_record *r = &e->record;
	const struct roci_opcode_info *op = roci_opcode_info(r->opcode);

	e->text = ladder_print(l, "--fault: PSN %u %s", r->imm, capture_fault_name(r->status));
	e->severity = LADDER_NOTE;
	e->fields =
		ladder_print(l, "packet=%s;PSN=%u;to QP=0x%06x;what=%s;when=%s", op ? op->name : "?", r->imm, r->qpn,
			     capture_fault_name(r->status), r->flags ? "before it was sent" : "after it arrived");
}

void ladder_word_event(struct ladder *l, struct ladder_event *e)
{
	switch (e->kind) {
	case LADDER_POST_SEND:
	case LADDER_POST_RECV: word_post(l, e); break;
	case LADDER_COMPLETION: word_completion(l, e); break;
	case LADDER_STATE: word_state(l, e); break;
	case LADDER_CONNECTION: word_connection(l, e); break;
	case LADDER_FAULT: word_fault(l, e); break;
	}
}
