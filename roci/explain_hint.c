/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain_hint.h"

const struct explanation *explain_hint(enum mover_status status, const char *text)
{
	bool network = status == MOVER_NO_CONNECT || status == MOVER_NO_DEVICE || status == MOVER_LOST;
	struct explain_found found;

	if (!text || (!network && status != MOVER_PROTOCOL))
		return NULL;
	explain_find(text, &found);
	if (!found.sure || ((found.rows[0]->kind == EXPLAIN_ERRNO || found.rows[0]->kind == EXPLAIN_CALL) && !network))
		return NULL;
	return found.rows[0];
}
