/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NOTE_CHARS 400
#define PACE_NS    UINT64_C(1000000000)

bool roci_why_on;
void (*roci_why_sink)(const char *line);

static _Thread_local char note[NOTE_CHARS];

void roci_why_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
}

const char *roci_why_take(void)
{
	static _Thread_local char taken[NOTE_CHARS];

	memcpy(taken, note, sizeof(taken));
	note[0] = '\0';
	return taken;
}

/* The text, the note, and how many lines were left out before. */
__attribute__((format(printf, 2, 0))) static void tell(uint32_t left_out, const char *format, va_list args)
{
	char line[2 * NOTE_CHARS];
	int len = vsnprintf(line, NOTE_CHARS, format, args);

	if (len >= NOTE_CHARS)
		len = NOTE_CHARS - 1;
	if (note[0])
		len += snprintf(line + len, sizeof(line) - (size_t)len, ": %s", roci_why_take());
	if (left_out && (size_t)len < sizeof(line))
		snprintf(line + len, sizeof(line) - (size_t)len, " (and %u more since the last such line)", left_out);
	if (roci_why_sink)
		roci_why_sink(line);
}

void roci_why_tell(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(0, format, args);
	va_end(args);
}

void roci_why_tell_paced(struct roci_why_pace *pace, uint64_t now_ns, const char *format, ...)
{
	va_list args;

	if (pace->next_ns && now_ns < pace->next_ns) {
		pace->left_out++;
		note[0] = '\0';
		return;
	}
	va_start(args, format);
	tell(pace->left_out, format, args);
	va_end(args);
	*pace = (struct roci_why_pace){.next_ns = now_ns + PACE_NS};
}

/* ---- names ---- */

#define NAME_OF(names, value)                                                                                          \
	((unsigned)(value) < sizeof(names) / sizeof((names)[0]) && (names)[value] ? (names)[value] : "?")

const char *roci_qp_state_name(enum roci_qp_state state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return NAME_OF(names, state);
}

const char *roci_qp_type_name(enum roci_qp_type type)
{
	static const char *const names[] = {[ROCI_QPT_RC] = "RC", [ROCI_QPT_UC] = "UC", [ROCI_QPT_UD] = "UD"};

	return NAME_OF(names, type);
}

const char *roci_wc_status_name(enum roci_wc_status status)
{
	static const char *const names[] = {
		[ROCI_WC_SUCCESS] = "IBV_WC_SUCCESS",
		[ROCI_WC_LOC_LEN_ERR] = "IBV_WC_LOC_LEN_ERR",
		[ROCI_WC_LOC_QP_OP_ERR] = "IBV_WC_LOC_QP_OP_ERR",
		[ROCI_WC_LOC_PROT_ERR] = "IBV_WC_LOC_PROT_ERR",
		[ROCI_WC_WR_FLUSH_ERR] = "IBV_WC_WR_FLUSH_ERR",
		[ROCI_WC_MW_BIND_ERR] = "IBV_WC_MW_BIND_ERR",
		[ROCI_WC_BAD_RESP_ERR] = "IBV_WC_BAD_RESP_ERR",
		[ROCI_WC_LOC_ACCESS_ERR] = "IBV_WC_LOC_ACCESS_ERR",
		[ROCI_WC_REM_INV_REQ_ERR] = "IBV_WC_REM_INV_REQ_ERR",
		[ROCI_WC_REM_ACCESS_ERR] = "IBV_WC_REM_ACCESS_ERR",
		[ROCI_WC_REM_OP_ERR] = "IBV_WC_REM_OP_ERR",
		[ROCI_WC_RETRY_EXC_ERR] = "IBV_WC_RETRY_EXC_ERR",
		[ROCI_WC_RNR_RETRY_EXC_ERR] = "IBV_WC_RNR_RETRY_EXC_ERR",
	};

	return NAME_OF(names, status);
}

const char *roci_wr_opcode_name(enum roci_wr_opcode opcode)
{
	static const char *const names[] = {
		[ROCI_WR_RDMA_WRITE] = "RDMA WRITE",
		[ROCI_WR_RDMA_WRITE_WITH_IMM] = "RDMA WRITE with immediate data",
		[ROCI_WR_SEND] = "SEND",
		[ROCI_WR_SEND_WITH_IMM] = "SEND with immediate data",
		[ROCI_WR_RDMA_READ] = "RDMA READ",
		[ROCI_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[ROCI_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[ROCI_WR_LOCAL_INV] = "LOCAL_INV",
		[ROCI_WR_BIND_MW] = "BIND_MW",
		[ROCI_WR_SEND_WITH_INV] = "SEND with invalidate",
		[ROCI_WR_FLUSH] = "FLUSH",
		[ROCI_WR_ATOMIC_WRITE] = "ATOMIC WRITE",
	};

	return NAME_OF(names, opcode);
}

/* The names of the bits that are set, `prefix` in front of each. */
static const char *bit_names(uint32_t bits, const char *prefix, const char *const *names, unsigned count,
			     char out[ROCI_WHY_NAMES])
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < 32 && len < ROCI_WHY_NAMES; i++) {
		const char *between = len ? ", " : "";

		if (!(bits & 1u << i))
			continue;
		if (i < count && names[i])
			len += (size_t)snprintf(out + len, ROCI_WHY_NAMES - len, "%s%s%s", between, prefix, names[i]);
		else
			len += (size_t)snprintf(out + len, ROCI_WHY_NAMES - len, "%s0x%x", between, 1u << i);
	}
	return len ? out : "none";
}

const char *roci_qp_mask_names(unsigned mask, char names[ROCI_WHY_NAMES])
{
	static const char *const bits[] = {
		"STATE",
		"CUR_STATE",
		"EN_SQD_ASYNC_NOTIFY",
		"ACCESS_FLAGS",
		"PKEY_INDEX",
		"PORT",
		"QKEY",
		"AV",
		"PATH_MTU",
		"TIMEOUT",
		"RETRY_CNT",
		"RNR_RETRY",
		"RQ_PSN",
		"MAX_QP_RD_ATOMIC",
		"ALT_PATH",
		"MIN_RNR_TIMER",
		"SQ_PSN",
		"MAX_DEST_RD_ATOMIC",
		"PATH_MIG_STATE",
		"CAP",
		"DEST_QPN",
	};

	return bit_names(mask, "IBV_QP_", bits, sizeof(bits) / sizeof(bits[0]), names);
}

const char *roci_access_names(uint32_t access, char names[ROCI_WHY_NAMES])
{
	static const char *const bits[] = {"LOCAL_WRITE",  "REMOTE_WRITE",    "REMOTE_READ", "REMOTE_ATOMIC",
					   "MW_BIND",      "ZERO_BASED",      "ON_DEMAND",   "HUGETLB",
					   "FLUSH_GLOBAL", "FLUSH_PERSISTENT"};

	return bit_names(access, "IBV_ACCESS_", bits, sizeof(bits) / sizeof(bits[0]), names);
}
