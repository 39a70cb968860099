/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain_say.h"

#include <errno.h>
#include <stdbool.h>

const struct explanation *explain_of_text(const char *text)
{
	struct explain_found found;

	if (!text)
		return NULL;
	explain_find(text, &found);
	return found.sure ? found.rows[0] : NULL;
}

/* Errors of a TCP connection that mean the same as those of rdma_cm. */
static bool is_of_the_network(int err)
{
	return err == ENETUNREACH || err == EHOSTUNREACH || err == ECONNREFUSED || err == ECONNRESET ||
	       err == ETIMEDOUT || err == EADDRNOTAVAIL || err == EADDRINUSE;
}

const struct explanation *explain_of_failure(const struct failure *failure)
{
	if (failure->completed)
		return explain_wc_status(failure->status);
	if (failure->reject >= 0)
		return explain_code(EXPLAIN_CM_REJECT, failure->reject);
	if (failure->call)
		return explain_of_text(failure->text);
	return is_of_the_network(-failure->err) ? explain_code(EXPLAIN_ERRNO, -failure->err) : NULL;
}

void explain_say(FILE *out, const struct explanation *e)
{
	char word[EXPLAIN_WORD_CHARS];

	if (e)
		fprintf(out, "  %s; `roci explain %s` tells more\n", e->title, explain_word(e, word));
}

void explain_say_json(json_t *object, const struct explanation *e)
{
	char word[EXPLAIN_WORD_CHARS];

	if (!e)
		return;
	json_object_set_new(object, "explain", json_string(explain_word(e, word)));
	json_object_set_new(object, "explanation", json_string(e->title));
}
