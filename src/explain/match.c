/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds what a text talks about: by names and phrases, and by numbers that stand behind a word that says what they are.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "explain/table.h"
#include "explain/words.h"

#define HITS_MAX 32

/* A row, and the part of the text that names it. A number that has no place of its own: from == to. */
struct hit {
	const struct explanation *row;
	const char *from, *to;
};

struct match {
	char words[WORDS_CHARS];
	unsigned calls;
	struct hit hits[HITS_MAX];
	size_t count;
	const struct explanation *also; /* what a number could mean as well; or NULL */
	bool unknown_code;              /* as in struct explain_found */
	enum explain_kind unknown_kind;
	int code;
};

static const struct {
	unsigned call;
	const char *phrases;
} calls[] = {
	{CALL_OPEN_DEVICE, "ibv open device|open device|ibv get device list|get device list|device list"},
	{CALL_REG_MR,
	 "reg mr|reg mr iova|reg mr iova2|register mr|register memory|memory registration|mr registration|"
	 "registering memory|reg dmabuf mr|register memory region|couldn t register mr|allocate mr|rdma reg "
	 "msgs"},
	{CALL_CREATE_CQ, "create cq|create cq ex|creating cq|couldn t create cq|create completion queue"},
	{CALL_CREATE_QP, "create qp|create qp ex|creating qp|couldn t create qp|unable to create qp|create queue pair"},
	{CALL_MODIFY_RTR, "to rtr|qp rtr|into rtr|rtr state"},
	{CALL_MODIFY_QP, "modify qp|modifying qp|modify queue pair"},
	{CALL_MODIFY_OTHER, "qp to init|qp to rts|to rts"},
	{CALL_QUERY_GID, "query gid|query gid ex|read sgid"},
	{CALL_POST_SEND, "post send|post a send|posting send|post write|post read|wr complete|post rdma write"},
	{CALL_POST_RECV, "post recv|post receive|post a receive|posting recv|post srq recv|post rx"},
	{CALL_CREATE_AH, "create ah|creating ah|create address handle|failed to create ah"},
	{CALL_DESTROY,
	 "destroy|destroy cq|destroy qp|destroy srq|dealloc pd|dereg mr|dealloc mw|deregister|close device"},
	{CALL_CM_CHANNEL, "create event channel|rdma create id|create id"},
	{CALL_CM_RESOLVE, "resolve addr|resolve address|resolve route|rdma getaddrinfo"},
	{CALL_CM_BIND, "bind addr|rdma bind|rdma listen|bind address"},
	{CALL_CM_CREATE_QP, "rdma create qp|rdma create qp ex"},
	{CALL_CM_CONNECT, "rdma connect|rdma accept|rconnect"},
};

static void add(struct match *m, const struct explanation *row, const char *from, const char *to)
{
	if (!row || m->count == HITS_MAX)
		return;
	for (size_t i = 0; i < m->count; i++) {
		if (m->hits[i].row == row)
			return;
	}
	m->hits[m->count++] = (struct hit){row, from, to};
}

static void try_phrase(struct match *m, const struct explanation *row, const char *phrase, size_t len)
{
	const char *at = words_find(m->words, phrase, len);

	if (at)
		add(m, row, at, at + len);
}

static void try_phrases(struct match *m, const struct explanation *row)
{
	for (const char *p = row->phrases; p && *p;) {
		size_t len = strcspn(p, "|");

		try_phrase(m, row, p, len);
		p += len + (p[len] == '|');
	}
}

/* A name may be a common word: "ACK", "REJECTED". It means a row only if it stands alone. */
static void try_words(struct match *m, const struct explanation *row, const char *name, size_t len)
{
	if (row->kind == EXPLAIN_ERRNO || memchr(name, ' ', len) || strlen(m->words) == len + 2)
		try_phrase(m, row, name, len);
}

/* A name as it is printed, without its prefix, and without _ERR at its end. */
static void try_name(struct match *m, const struct explanation *row)
{
	char name[WORDS_CHARS], word[EXPLAIN_WORD_CHARS];
	size_t len;

	words_normalise(row->name, name);
	try_words(m, row, name + 1, strlen(name) - 2);
	words_normalise(explain_word(row, word), name);
	len = strlen(name) - 2;
	try_words(m, row, name + 1, len);
	if (len > 4 && !strncmp(name + 1 + len - 4, " err", 4))
		try_words(m, row, name + 1, len - 4);
}

static void by_name(struct match *m)
{
	for (unsigned kind = 0; kind < EXPLAIN_KINDS; kind++) {
		size_t count;
		const struct explanation *rows = explain_rows((enum explain_kind)kind, &count);

		for (size_t i = 0; i < count; i++) {
			try_name(m, &rows[i]);
			try_phrases(m, &rows[i]);
		}
	}
}

/* Whether the word before `at` is one of these; *before is its place then. */
static bool preceded(const struct match *m, const char *at, const char *words, const char **before)
{
	const char *word = at - 1;

	if (word <= m->words)
		return false;
	while (word > m->words && word[-1] != ' ')
		word--;
	*before = word;
	for (const char *w = words; *w;) {
		size_t len = strcspn(w, "|");

		if (!strncmp(word, w, len) && word[len] == ' ')
			return true;
		w += len + (w[len] == '|');
	}
	return false;
}

static const struct explanation *syndrome(long value)
{
	if (value < 0 || value > EXPLAIN_SYNDROME_MAX)
		return NULL;
	if (value < 0x20)
		return explain_code(EXPLAIN_NAK, 0x1f);
	return explain_code(EXPLAIN_NAK, value < 0x40 ? 0x20 : (int)value);
}

/* A row of a kind. If there is none, the text has a wrong number: it is kept. */
static const struct explanation *code_of(struct match *m, enum explain_kind kind, int code)
{
	const struct explanation *row = explain_code(kind, code);

	if (!row && !m->unknown_code) {
		m->unknown_code = true;
		m->unknown_kind = kind;
		m->code = code;
	}
	return row;
}

static const struct explanation *syndrome_of(struct match *m, long value)
{
	const struct explanation *row = syndrome(value);

	return row || value <= EXPLAIN_SYNDROME_MAX ? row : code_of(m, EXPLAIN_NAK, (int)value);
}

/* Whether the error number behind the word at `word` is the status of a completion: by the words before it, or by the
 * vendor error that only completions have. */
static bool of_completion(const struct match *m, const char *word)
{
	const char *with, *other;

	if (preceded(m, word, "wc|completion|cqe", &other) || words_have(m->words, "vendor err|vend err|vendor error"))
		return true;
	return preceded(m, word, "with", &with) && preceded(m, with, "wc|completion|cqe", &other);
}

/* What a number means behind the word before it; NULL: nothing. */
static const struct explanation *numbered(struct match *m, const char *at, long value)
{
	bool cm = words_have(m->words, "rejected|reject|rej|cma|cm|rdma cm event rejected");
	const char *before, *other;
	int code = (int)value;

	if (value < -4096 || value > 4096)
		return NULL;
	if (value < 0)
		return preceded(m, at, "status|error|err|errno|ret|rc|returned|code|result|with|failed", &before)
			       ? explain_code(EXPLAIN_ERRNO, -code)
			       : NULL;
	if (preceded(m, at, "rej|reason|reject|rejected|rejection", &before) ||
	    (preceded(m, at, "code", &before) && words_have(m->words, "reject|rejected")))
		return code_of(m, EXPLAIN_CM_REJECT, code);
	if (preceded(m, at, "syndrome|aeth", &before))
		return preceded(m, before, "vendor|hw", &other) ? NULL : syndrome_of(m, value);
	if (preceded(m, at, "nak|code", &before) && words_have(m->words, "nak"))
		return code < 5 ? syndrome(0x60 | value) : code < 0x20 ? NULL : syndrome(value);
	if (preceded(m, at, "state", &before))
		return explain_code(EXPLAIN_QP_STATE, code);
	if (preceded(m, at, "wc|cqe", &before) && before == m->words + 1 &&
	    !strchr(at, ' ')[1]) /* nothing but "wc 5" */
		return code_of(m, EXPLAIN_WC_STATUS, code);
	if (preceded(m, at, "event", &before) && !cm && !words_have(m->words, "async")) {
		m->also = explain_code(EXPLAIN_ASYNC, code);
		return explain_code(EXPLAIN_CM_EVENT, code);
	}
	if (preceded(m, at, "event|type", &before))
		return words_have(m->words, "async") ? explain_code(EXPLAIN_ASYNC, code)
		       : cm                          ? explain_code(EXPLAIN_CM_EVENT, code)
						     : NULL;
	if (preceded(m, at, "errno|ret|rc|returned", &before))
		return explain_code(EXPLAIN_ERRNO, code);
	if (preceded(m, at, "status|error|err", &before)) {
		if (preceded(m, before, "vendor|vend|exit", &other))
			return NULL;
		if (code && of_completion(m, before))
			return code_of(m, EXPLAIN_WC_STATUS, code);
		if (words_have(m->words, "rdma cm event unreachable"))
			return NULL; /* the status of a SIDR REP, which the event's text explains */
		if (cm && !words_have(m->words, "cq|wc|completion"))
			return code_of(m, EXPLAIN_CM_REJECT, code);
		if (*before == 's')
			return code_of(m, EXPLAIN_WC_STATUS, code);
		if (before == m->words + 1) /* nothing but "error 12": it may be a completion's */
			m->also = explain_code(EXPLAIN_WC_STATUS, code);
		return explain_code(EXPLAIN_ERRNO, code);
	}
	return NULL;
}

/* "remote access error (10)": the number repeats what the words say. */
static bool repeats(const struct match *m, const char *at)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->hits[i].to == at - 1 && m->hits[i].row->kind <= EXPLAIN_NAK)
			return true;
	}
	return false;
}

static void by_number(struct match *m)
{
	for (const char *at = m->words; (at = strchr(at, ' ')) && at[1];) {
		long value;

		at++;
		if (words_number(at, &value) && !repeats(m, at))
			add(m, numbered(m, at, value), at, at);
	}
}

/* "ibv_post_send: 12". Verbs return an errno as it is, so a number that ends the line of a call is one, where nothing
 * else says what it is. */
static void by_last_number(struct match *m)
{
	const char *at = m->words;
	long value;

	if (m->count || !m->calls)
		return;
	for (const char *space = m->words; (space = strchr(space, ' ')) && space[1];)
		at = ++space;
	if (words_number(at, &value) && value > 0 && value < 4096)
		add(m, explain_code(EXPLAIN_ERRNO, (int)value), at, at);
}

/* perftest's words for a connection that failed. They have no errno; where a line has one, it is that. */
static void by_failed_connection(struct match *m)
{
	static const char *const phrases[] = {"unable to init the socket connection", "couldn t connect to"};

	for (size_t i = 0; i < m->count; i++) {
		if (m->hits[i].row->kind == EXPLAIN_ERRNO)
			return;
	}
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		try_phrase(m, explain_code(EXPLAIN_ERRNO, ECONNREFUSED), phrases[i], strlen(phrases[i]));
}

#define CQE_WORDS 16

/* The CQE that mlx5 dumps behind "got completion with error:" is 16 words. The last byte of the 14th is the syndrome,
 * the one before it the vendor's (struct mlx5_err_cqe). */
static void by_cqe(struct match *m)
{
	static const struct {
		unsigned syndrome;
		enum ibv_wc_status status;
	} statuses[] = {
		{0x01, IBV_WC_LOC_LEN_ERR},    {0x02, IBV_WC_LOC_QP_OP_ERR},   {0x04, IBV_WC_LOC_PROT_ERR},
		{0x05, IBV_WC_WR_FLUSH_ERR},   {0x06, IBV_WC_MW_BIND_ERR},     {0x10, IBV_WC_BAD_RESP_ERR},
		{0x11, IBV_WC_LOC_ACCESS_ERR}, {0x12, IBV_WC_REM_INV_REQ_ERR}, {0x13, IBV_WC_REM_ACCESS_ERR},
		{0x14, IBV_WC_REM_OP_ERR},     {0x15, IBV_WC_RETRY_EXC_ERR},   {0x16, IBV_WC_RNR_RETRY_EXC_ERR},
		{0x22, IBV_WC_REM_ABORT_ERR},
	};
	static const char phrase[] = "got completion with error";
	const char *at = words_find(m->words, phrase, strlen(phrase));
	unsigned long word = 0;

	if (!at)
		return;
	at += strlen(phrase) + 1;
	for (unsigned i = 0; i < CQE_WORDS; i++, at += 9) {
		if (strspn(at, "0123456789abcdef") != 8 || at[8] != ' ')
			return;
		if (i == 13)
			word = strtoul(at, NULL, 16);
	}
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].syndrome == (word & 0xff))
			add(m, explain_code(EXPLAIN_WC_STATUS, statuses[i].status), at, at);
	}
}

/* Drops a hit that is part of a longer one: "remote access error" in "nak remote access error". */
static void drop_parts(struct match *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct hit *h = &m->hits[i];
		bool part = false;

		for (size_t j = 0; j < m->count && !part; j++) {
			const struct hit *o = &m->hits[j];

			part = o != h && h->from >= o->from && h->to <= o->to && o->to - o->from > h->to - h->from &&
			       h->from != h->to;
		}
		if (!part)
			m->hits[kept++] = *h;
	}
	m->count = kept;
}

/* A row for the call that the text names, in place of the row for any call. Whether there is a call, but no such row.
 */
static bool prefer_calls(struct match *m)
{
	bool missing = false;
	size_t count;
	const struct explanation *rows = explain_rows(EXPLAIN_CALL, &count);

	for (size_t i = 0; i < m->count; i++) {
		const struct explanation *row = m->hits[i].row, *better = NULL;

		if (row->kind != EXPLAIN_ERRNO)
			continue;
		for (size_t k = 0; k < count && !better; k++) {
			if (rows[k].code == row->code && (rows[k].calls & m->calls))
				better = &rows[k];
		}
		missing |= m->calls && !better;
		for (size_t j = 0; j < m->count && better; j++) {
			if (m->hits[j].row == better) { /* found by its name, too */
				m->hits[i--] = m->hits[--m->count];
				better = NULL;
			}
		}
		if (better)
			m->hits[i].row = better;
	}
	return missing;
}

static unsigned find_calls(const char *words)
{
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (words_have(words, calls[i].phrases))
			found |= calls[i].call;
	}
	if (found & (CALL_MODIFY_RTR | CALL_MODIFY_OTHER))
		found &= ~(unsigned)CALL_MODIFY_QP;
	return found & CALL_CM_CREATE_QP ? found & ~(unsigned)CALL_CREATE_QP : found;
}

/* Lower is read first: what says most comes before what it happened to. */
static int rank(const struct explanation *row)
{
	static const int ranks[EXPLAIN_KINDS] = {
		[EXPLAIN_WC_STATUS] = 0, [EXPLAIN_NAK] = 1,      [EXPLAIN_CM_REJECT] = 2, [EXPLAIN_CALL] = 3,
		[EXPLAIN_ERRNO] = 3,     [EXPLAIN_CM_EVENT] = 4, [EXPLAIN_ASYNC] = 5,     [EXPLAIN_QP_STATE] = 6,
	};

	return ranks[row->kind];
}

static int compare(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	int difference = rank(x->row) - rank(y->row);

	return difference ? difference : (x->from > y->from) - (x->from < y->from);
}

/* A number alone may be a code of each kind. One in hexadecimal is first of all a syndrome: analysers print those so.
 */
static bool lone_number(const struct match *m, struct explain_found *found)
{
	static const enum explain_kind kinds[] = {EXPLAIN_WC_STATUS, EXPLAIN_CM_REJECT, EXPLAIN_ERRNO,
						  EXPLAIN_CM_EVENT,  EXPLAIN_ASYNC,     EXPLAIN_QP_STATE};
	const struct explanation *aeth;
	bool hex = !strncmp(m->words + 1, "0x", 2);
	long value;

	if (!words_number(m->words + 1, &value) || strchr(m->words + 1, ' ')[1] || labs(value) > 4096)
		return false;
	aeth = syndrome(value);
	if (aeth && hex)
		found->rows[found->count++] = aeth;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int code = (int)(value < 0 ? -value : value);
		const struct explanation *row =
			value < 0 && kinds[i] != EXPLAIN_ERRNO ? NULL : explain_code(kinds[i], code);

		if (row)
			found->rows[found->count++] = row;
	}
	if (aeth && !hex && value >= 0x20 && found->count < EXPLAIN_FOUND_MAX)
		found->rows[found->count++] = aeth;
	found->sure = found->count ? 1 : 0;
	return true;
}

/* "NAK" alone: each of them, to choose from. */
static bool every_nak(const struct match *m, struct explain_found *found)
{
	size_t count;
	const struct explanation *rows = explain_rows(EXPLAIN_NAK, &count);

	if (strcmp(m->words, " nak ") && strcmp(m->words, " naks "))
		return false;
	for (size_t i = 0; i < count && found->count < EXPLAIN_FOUND_MAX; i++) {
		if (rows[i].code >= 0x20) /* no ACK */
			found->rows[found->count++] = &rows[i];
	}
	return true;
}

/* A call that failed, and nothing says how: the rows of that call, to choose from. */
static void every_row_of_calls(const struct match *m, struct explain_found *found)
{
	size_t count;
	const struct explanation *rows = explain_rows(EXPLAIN_CALL, &count);

	for (size_t i = 0; i < count && found->count < EXPLAIN_FOUND_MAX; i++) {
		if (rows[i].calls & m->calls)
			found->rows[found->count++] = &rows[i];
	}
}

void explain_find(const char *text, struct explain_found *found)
{
	struct match m = {.count = 0};

	*found = (struct explain_found){.count = 0};
	words_normalise(text, m.words);
	found->vendor = words_have(m.words, "vendor err|vend err|vendor error|vendor syndrome");
	if (!strcmp(m.words, " flush ")) /* alone: in a line it is what caches do */
		add(&m, explain_code(EXPLAIN_WC_STATUS, IBV_WC_WR_FLUSH_ERR), m.words, m.words);
	if (lone_number(&m, found) || every_nak(&m, found))
		return;
	m.calls = find_calls(m.words);
	by_name(&m);
	by_number(&m);
	by_cqe(&m);
	by_last_number(&m);
	by_failed_connection(&m);
	drop_parts(&m);
	found->general = prefer_calls(&m);
	qsort(m.hits, m.count, sizeof(m.hits[0]), compare);
	for (size_t i = 0; i < m.count && i < EXPLAIN_FOUND_MAX; i++)
		found->rows[found->count++] = m.hits[i].row;
	found->sure = found->count;
	if (found->count == 1 && m.also)
		found->rows[found->count++] = m.also;
	if (!found->count && !m.unknown_code)
		every_row_of_calls(&m, found);
	found->unknown_code = m.unknown_code && !found->count;
	found->unknown_kind = m.unknown_kind;
	found->code = m.code;
}
