/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error paths of the public API, as its manual pages describe them: a verbs program that `roci run` starts. Each file
 * tests one kind of object; main.c runs all and prints TAP.
 */
#ifndef ROCI_TESTS_API_H
#define ROCI_TESTS_API_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "verbs/flush.h" /* IWYU pragma: export */

/* Counts a failure of the running test, and goes on. */
void check_at(bool ok, const char *file, int line, const char *text);
#define CHECK(cond) check_at(cond, __FILE__, __LINE__, #cond)
/* The call returns NULL (or -1) and sets errno to this. */
#define CHECK_ERRNO(failed, error)                                                                                     \
	check_at((errno = 0, (failed)) && errno == (error), __FILE__, __LINE__, #failed " with " #error)

/* Open for the whole run. */
extern struct ibv_device *api_device;
extern struct ibv_context *api_ctx, *api_other; /* a second context, for foreign objects */
extern struct ibv_pd *api_pd;

#define API_BUFFER_SIZE 65536

/* Two connected RC queue pairs of this process over one CQ each, and a registered buffer. */
struct pair {
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	char *buf;
};
/* `ops`: what ibv_wr_* may be used for, 0 for plain QPs. */
void pair_open(struct pair *p, uint64_t ops);
void pair_close(struct pair *p);

struct ibv_qp *qp_new(enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq, const struct ibv_qp_cap *cap);
int qp_to_init(struct ibv_qp *qp);
int qp_to_rtr(struct ibv_qp *qp, uint32_t dest_qpn);
int qp_to_rts(struct ibv_qp *qp);
/* The address of GID 0: ourselves. */
void ah_self(struct ibv_ah_attr *attr);
/* Polls until there is a completion; false after ten seconds. */
bool cq_wait(struct ibv_cq *cq, struct ibv_wc *wc);
/* True if there is no completion for a tenth of a second. */
bool cq_quiet(struct ibv_cq *cq);

void test_device_list(void);
void test_device_list_cancel(void);
void test_device_contexts(void);
void test_device_queries(void);
void test_port_tables(void);
void test_sysfs(void);
void test_unsupported(void);
void test_pd(void);
void test_mr_ranges(void);
void test_mr_empty(void);
void test_mr_access(void);
void test_mr_rereg(void);
void test_mr_advise(void);
void test_mw(void);
void test_mw_rkey(void);
void test_cq_create(void);
void test_cq_in_use(void);
void test_cq_resize(void);
void test_cq_ex(void);
void test_cq_ex_destroys(void);
void test_cq_ex_destroys_beside_another(void);
void test_cq_timestamps(void);
void test_cq_overrun(void);
void test_srq(void);
void test_srq_full(void);
void test_qp_create(void);
void test_qp_modify(void);
void test_qp_query(void);
void test_qp_destroy_purges(void);
void test_mcast(void);
void test_post_send_errors(void);
void test_post_send_full(void);
void test_post_recv_full(void);
void test_post_states(void);
void test_builder_sends(void);
void test_builder_flush(void);
void test_builder_mistakes(void);
void test_builder_full(void);
void test_channel_events(void);
void test_channel_purge(void);
void test_channel_forked(void);
void test_forked_in_the_middle(void);
void test_forked_in_a_channel(void);
void test_channel_becomes_nonblocking(void);
void test_channel_cancel(void);
void test_destroy_cancel(void);
void test_channel_signals(void);
void test_async_signals(void);
void test_channel_acks(void);
void test_async_events(void);
void test_exit_sends(void);
void test_closed_context(void);
void test_ah(void);
void test_ah_from_wc(void);

#endif
