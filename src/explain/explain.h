/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the errors of verbs and rdma_cm mean: a table for people, and the functions that find a row of it.
 *
 * Everything here is pure: constant tables and string functions. Facts come from IBTA volume 1, the manual pages of
 * libibverbs and librdmacm, and the headers of Linux.
 */
#ifndef ROCI_EXPLAIN_EXPLAIN_H
#define ROCI_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* The tables, one file each. */
enum explain_kind {
	EXPLAIN_WC_STATUS, /* enum ibv_wc_status */
	EXPLAIN_NAK,       /* the AETH syndrome of an acknowledgement, IBTA 9.7.5.1.1 */
	EXPLAIN_CM_REJECT, /* the reason of a REJ, IBTA 12.6.7.2 */
	EXPLAIN_CM_EVENT,  /* enum rdma_cm_event_type */
	EXPLAIN_ASYNC,     /* enum ibv_event_type */
	EXPLAIN_CALL,      /* errno of a call */
	EXPLAIN_ERRNO,     /* errno, whatever the call */
	EXPLAIN_QP_STATE,  /* enum ibv_qp_state */
	EXPLAIN_KINDS,
};

#define EXPLAIN_LINES 7 /* of a list; the last is NULL */

struct explanation {
	int code;            /* the number that programs see */
	const char *name;    /* "IBV_WC_RNR_RETRY_EXC_ERR". Of an errno of a call: "ibv_modify_qp EINVAL" */
	const char *phrases; /* how logs say it, in lower case, '|' between; NULL: by its name only */
	const char *title;   /* what it means in one line, without a full stop */
	const char *meaning;
	const char *look;                  /* on which side to look */
	const char *causes[EXPLAIN_LINES]; /* the most likely first */
	const char *steps[EXPLAIN_LINES];  /* what to try */
	const char *see;                   /* a command that makes it happen on roci0; NULL: none does */
	enum explain_kind kind;
	bool foreign;   /* `see` plays a peer that does what roci0 never does */
	unsigned calls; /* CALL: of which calls (enum explain_call), as bits */
};

#define EXPLAIN_SYNDROME_MAX 0x7f /* the highest bit is reserved */

/* "completion status", "CM reject reason" ... */
const char *explain_kind_name(enum explain_kind kind);

/* The row of a code; NULL: there is none. Of EXPLAIN_CALL, the first one. */
const struct explanation *explain_code(enum explain_kind kind, int code);

/* The row of enum ibv_wc_status; NULL: none. */
static inline const struct explanation *explain_wc_status(int status)
{
	return explain_code(EXPLAIN_WC_STATUS, status);
}

/* The shortest word by which `roci explain` finds the row: "RNR_RETRY_EXC_ERR", "REJ 28", "EINVAL". */
#define EXPLAIN_WORD_CHARS 64
const char *explain_word(const struct explanation *e, char word[EXPLAIN_WORD_CHARS]);

/* The number with what it is: "completion status 12", "AETH syndrome 0x62", "AETH syndrome 0x20 to 0x3f", "errno 22".
 */
const char *explain_number(const struct explanation *e, char text[EXPLAIN_WORD_CHARS]);

/* The least and the greatest code of a kind. */
void explain_range(enum explain_kind kind, int *least, int *most);

/* All rows of a kind: *count of them. */
const struct explanation *explain_rows(enum explain_kind kind, size_t *count);

#define EXPLAIN_FOUND_MAX 8

/* What a text talks about: a name, a number, or a line of a log. */
struct explain_found {
	const struct explanation *rows[EXPLAIN_FOUND_MAX]; /* the one to read first is first */
	size_t count;
	size_t sure; /* the first so many are meant together; the others are what the text could mean as well */
	/* With count 0: the text has a number of this kind, but the kind has no such code. */
	bool unknown_code;
	enum explain_kind unknown_kind;
	int code;
	bool vendor;  /* the text has a vendor error: nothing here explains that number */
	bool general; /* the text names a call too, but no row is about its errno: a row says what the errno means
			 anywhere */
};

/* Finds what `text` talks about. Never fails: without a match found->count is 0. */
void explain_find(const char *text, struct explain_found *found);

#endif
