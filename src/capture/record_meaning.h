/* SPDX-License-Identifier: BSD-2-Clause */
/* What a record of the embedded device says (wire/record.h), in a line and field by field. */
#ifndef CAPTURE_RECORD_MEANING_H
#define CAPTURE_RECORD_MEANING_H

#include "capture/fields.h"
#include "wire/record.h"

/* Records that say the same are one to people: a program posts its receives by the hundred. */
struct capture_run {
	struct roci_record first;
	uint64_t count;      /* of records; 0: none */
	uint64_t last_wr_id; /* of the last of them */
};

/* Adds a record. False: it says something else, and nothing was done. An empty run takes any. */
bool capture_run_add(struct capture_run *run, const struct roci_record *record);

/* "post send", "completion", "connection event". */
const char *capture_record_name(const struct roci_record *r);
/* The name in JSON: "post_send". */
const char *capture_record_word(const struct roci_record *r);

/* A failed completion, a rejection, a QP in error, a packet that --fault changed. */
bool capture_record_is_error(const struct roci_record *r);
/* Whether it tells what the device does between a post and its completion. */
bool capture_record_is_step(const struct roci_record *r);

/* "SEND 4 KiB, wr_id 2", "READ failed: IBV_WC_REM_ACCESS_ERR (10): ...". One line, always terminated; the name of a
 * process is as its writer chose it. */
#define CAPTURE_RECORD_CHARS 320
const char *capture_run_meaning(const struct capture_run *run, char text[CAPTURE_RECORD_CHARS]);

/* Calls fn with each field that the kind has. They are of the group "record". */
void capture_record_fields(const struct roci_record *r, capture_field_fn *fn, void *context);

#endif
