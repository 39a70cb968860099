/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a check failed, for people: `roci run --why`.
 *
 * A check that fails notes which field it was, its value, and what is allowed. The note belongs to the thread. Who
 * refuses the call, or completes the request, takes the note and tells it. All of this happens on the way of an error
 * only, and costs a branch where nobody asks.
 */
#ifndef ROCI_ENGINE_WHY_H
#define ROCI_ENGINE_WHY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/types.h"

/* Whether somebody asks. Set once, before the first call. */
extern bool roci_why_on;

/* Gets each line that roci_why_tell() makes, without a line break. NULL: nobody does. Set with roci_why_on. */
extern void (*roci_why_sink)(const char *line);

/* Replaces the thread's note. */
__attribute__((format(printf, 1, 2))) void roci_why_note(const char *format, ...);

/* Returns the thread's note, "" if there is none, and clears it. Valid until the thread's next note. */
const char *roci_why_take(void);

/* Tells the text, ": " and the thread's note, and clears it. */
__attribute__((format(printf, 1, 2))) void roci_why_tell(const char *format, ...);

/* Of lines that a peer can cause: one a second. */
struct roci_why_pace {
	uint64_t next_ns; /* when the next line may be told; 0: none was told yet */
	uint32_t left_out;
};

/* As roci_why_tell(), or, if a line was told less than a second before `now_ns`, nothing but that the note is cleared.
 * The next line says how many were left out. */
__attribute__((format(printf, 3, 4))) void roci_why_tell_paced(struct roci_why_pace *pace, uint64_t now_ns,
							       const char *format, ...);

#define ROCI_WHY(...)            (__builtin_expect(roci_why_on, 0) ? roci_why_note(__VA_ARGS__) : (void)0)
#define ROCI_WHY_TELL(...)       (__builtin_expect(roci_why_on, 0) ? roci_why_tell(__VA_ARGS__) : (void)0)
#define ROCI_WHY_TELL_PACED(...) (__builtin_expect(roci_why_on, 0) ? roci_why_tell_paced(__VA_ARGS__) : (void)0)

/* The value `err`, with a note: return ROCI_REFUSE(-EINVAL, "timeout %u: at most 31", timeout); */
#define ROCI_REFUSE(err, ...) (ROCI_WHY(__VA_ARGS__), (err))

/* Names as programs write them: "RTR", "IBV_WC_LOC_PROT_ERR", "SEND"; "?" for others. */
const char *roci_qp_state_name(enum roci_qp_state state);
const char *roci_qp_type_name(enum roci_qp_type type);
const char *roci_wc_status_name(enum roci_wc_status status);
const char *roci_wr_opcode_name(enum roci_wr_opcode opcode);

/* The names of the bits of an attribute mask: "IBV_QP_AV, IBV_QP_PATH_MTU". */
#define ROCI_WHY_NAMES 320
const char *roci_qp_mask_names(unsigned mask, char names[ROCI_WHY_NAMES]);

/* The names of access rights: "LOCAL_WRITE, REMOTE_READ"; "none". */
const char *roci_access_names(uint32_t access, char names[ROCI_WHY_NAMES]);

#endif
