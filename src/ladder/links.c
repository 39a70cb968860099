/* SPDX-License-Identifier: BSD-2-Clause */
/* Which post and completion belong to which message. */
#include <infiniband/verbs.h>
#include <string.h>

#include "ladder/store.h"

static enum roci_kind kind_of_post(uint8_t opcode)
{
	switch (opcode) { /* enum ibv_wr_opcode */
	case 0:
	case 1: return ROCI_KIND_WRITE;
	case 2:
	case 3:
	case 9: return ROCI_KIND_SEND;
	case 4: return ROCI_KIND_READ_REQUEST;
	case 5:
	case 6: return ROCI_KIND_ATOMIC;
	case 14: return ROCI_KIND_FLUSH;
	case 15: return ROCI_KIND_ATOMIC_WRITE;
	default: return 0; /* local */
	}
}

/* A READ that was posted, of which some bytes are to be asked for: a long one is asked for in pieces. */
struct posted_read {
	uint64_t left; /* bytes; 0: none */
	int post, completion;
};

/* Lists of events, in the order of time. Each event is in one list at most. */
struct lists {
	int *next;        /* of each event, -1: the last */
	int *posts;       /* by conversation and end: its requests */
	int *receives;    /* ... and receives that completed */
	int *completions; /* by hash of process, QP and wr_id; those of another key may be among them */
	size_t hash_mask;
	struct posted_read *reads; /* by conversation and end */
};

static size_t hash_of_request(const struct lists *x, const struct roci_record *r)
{
	uint64_t z = ((uint64_t)r->pid << 32 | r->qpn) * 0x9e3779b97f4a7c15u ^ r->wr_id * 0xff51afd7ed558ccdu;

	return (size_t)(z ^ z >> 29) & x->hash_mask;
}

static bool same_request(const struct roci_record *a, const struct roci_record *b)
{
	return a->pid == b->pid && a->qpn == b->qpn && a->wr_id == b->wr_id;
}

/* The list that an event is in; NULL: none. */
static int *list_of(const struct ladder *l, const struct lists *x, const struct ladder_event *e)
{
	const struct roci_record *r = &e->record;
	bool receive = e->kind == LADDER_COMPLETION && r->opcode >= IBV_WC_RECV;
	size_t at;

	if (e->kind == LADDER_COMPLETION && !receive)
		return &x->completions[hash_of_request(x, r)];
	if (e->conversation < 0)
		return NULL;
	at = (size_t)e->conversation * 2 + (l->conversations[e->conversation].lines[1] == e->end);
	if (receive && r->status != IBV_WC_WR_FLUSH_ERR)
		return &x->receives[at];
	return e->kind == LADDER_POST_SEND && kind_of_post(r->opcode) ? &x->posts[at] : NULL;
}

static void fill_lists(const struct ladder *l, struct lists *x)
{
	memset(x->posts, 0xff, 2 * (l->conversation_count + 1) * sizeof(*x->posts));
	memset(x->receives, 0xff, 2 * (l->conversation_count + 1) * sizeof(*x->receives));
	memset(x->completions, 0xff, (x->hash_mask + 1) * sizeof(*x->completions));
	for (size_t i = l->event_count; i-- > 0;) {
		int *list = list_of(l, x, &l->events[i]);

		x->next[i] = list ? *list : -1;
		if (list)
			*list = (int)i;
	}
}

/* The first completion of a post that no other post has. */
static int completion_of(const struct ladder *l, struct lists *x, int post)
{
	const struct roci_record *r = &l->events[post].record;
	int *link = &x->completions[hash_of_request(x, r)];

	if (!(r->flags & IBV_SEND_SIGNALED))
		return -1; /* it has one only where it fails */
	while (*link >= 0) {
		int found = *link;

		if (!same_request(&l->events[found].record, r)) {
			link = &x->next[found];
			continue;
		}
		*link = x->next[found];
		if (found > post) /* an older one is of a post that is not in the capture */
			return found;
	}
	return -1;
}

/* Messages of an end go in the order of its posts, so the n-th message belongs to the n-th post, as long as their kinds
 * agree: a capture may begin late. */
static void link_post(const struct ladder *l, struct lists *x, struct ladder_message *m)
{
	int *posts = &x->posts[m->conversation * 2 + m->end], post = *posts;
	struct posted_read *read = &x->reads[m->conversation * 2 + m->end];
	uint64_t length;

	if (m->kind == ROCI_KIND_READ_REQUEST && read->left) {
		m->post = read->post;
		m->completion = read->completion;
		read->left -= m->bytes < read->left ? m->bytes : read->left;
		return;
	}
	if (post < 0)
		return;
	/* A probe that nothing came before is not known for one. */
	if (m->kind == ROCI_KIND_WRITE && !m->bytes &&
	    (kind_of_post(l->events[post].record.opcode) != m->kind || l->events[post].record.length))
		return;
	if (kind_of_post(l->events[post].record.opcode) != m->kind) {
		*posts = -1;
		return;
	}
	m->post = post;
	*posts = x->next[post];
	m->completion = completion_of(l, x, post);
	length = m->kind == ROCI_KIND_READ_REQUEST ? l->events[post].record.length : 0;
	*read = (struct posted_read){length > m->bytes ? length - m->bytes : 0, post, m->completion};
}

/* Receives complete in the order of the messages that take one. */
static void link_receive(const struct ladder *l, struct lists *x, struct ladder_message *m)
{
	int *receives = &x->receives[m->conversation * 2 + !m->end];
	bool with_imm = m->post >= 0 && l->events[m->post].record.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (m->kind != ROCI_KIND_SEND && !(m->kind == ROCI_KIND_WRITE && with_imm))
		return;
	m->receive = *receives;
	if (*receives >= 0)
		*receives = x->next[*receives];
}

void ladder_find_links(struct ladder *l)
{
	struct lists x = {.hash_mask = 1023};
	size_t ends = 2 * (l->conversation_count + 1);

	while (x.hash_mask < l->event_count)
		x.hash_mask = x.hash_mask * 2 + 1;
	x.next = calloc(l->event_count + 1, sizeof(*x.next));
	x.posts = calloc(ends, sizeof(*x.posts));
	x.receives = calloc(ends, sizeof(*x.receives));
	x.completions = calloc(x.hash_mask + 1, sizeof(*x.completions));
	x.reads = calloc(ends, sizeof(*x.reads));
	if (!x.next || !x.posts || !x.receives || !x.completions || !x.reads) {
		l->out_of_memory = true;
	} else {
		fill_lists(l, &x);
		for (size_t i = 0; i < l->message_count; i++) {
			link_post(l, &x, &l->messages[i]);
			link_receive(l, &x, &l->messages[i]);
		}
	}
	free(x.next);
	free(x.posts);
	free(x.receives);
	free(x.completions);
	free(x.reads);
}
