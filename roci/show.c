/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>

#include "show.h"

void show_init(struct show *show)
{
	setvbuf(stderr, NULL, _IOLBF, 0); /* keep lines whole when two processes share a terminal */
	if (!show->json && !show->quiet)
		bar_init(&show->bar, stderr);
}

void show_event(void *context, const struct mover_event *event)
{
	struct show *show = context;
	(show->json ? show_json : show_people)(show, event);
}

void show_ticket(struct show *show, const struct mover_ticket *ticket, const char *file)
{
	(show->json ? show_json_ticket : show_people_ticket)(show, ticket, file);
}

__attribute__((format(printf, 4, 0))) static void emit(struct show *show, enum mover_event_type type,
						       enum mover_status status, const char *format, va_list args)
{
	char text[1024];
	vsnprintf(text, sizeof(text), format, args);
	show_event(show, &(struct mover_event){.type = type, .status = status, .text = text});
}

enum mover_status show_failure(struct show *show, enum mover_status status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	emit(show, MOVER_ENDED, status, format, args);
	va_end(args);
	return status;
}

void show_warning(struct show *show, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	emit(show, MOVER_WARNING, MOVER_OK, format, args);
	va_end(args);
}
