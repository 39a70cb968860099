/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "show.h"
#include "stats_find.h"

void show_init(struct show *show)
{
	setvbuf(stderr, NULL, _IOLBF, 0); /* keep lines whole when two processes share a terminal */
	if (!show->json && !show->quiet)
		bar_init(&show->bar, stderr);
}

/* The mover knows the device, but not the path that it took to the peer: the device's counters tell, where this session
 * is the first that was connected since the last look. */
static const char *path_taken(struct show *show, const char *path)
{
	struct roci_stats_file found;
	char why[STATS_WHY_CHARS];
	uint64_t before = show->local_qps;
	bool alive;

	if (strcmp(path, "roci0 over udp") || stats_find(getpid(), &found, &alive, why))
		return path;
	show->local_qps = found.device.local_qps;
	return show->local_qps > before ? "roci0 over shared memory" : path;
}

/* Only the software device counts for this process alone. */
static void count_resent(struct show *show, const struct mover_event *event)
{
	struct roci_stats_file found;
	char why[STATS_WHY_CHARS];
	bool alive;

	show->resent_known = show->device->embedded && !stats_find(getpid(), &found, &alive, why);
	if (!show->resent_known)
		return;
	if (event->type == MOVER_CONNECTED && !show->connected)
		show->resent_before = found.engine.retransmits;
	show->connected = true;
	show->resent = found.engine.retransmits - show->resent_before;
}

void show_event(void *context, const struct mover_event *event)
{
	struct show *show = context;
	struct mover_event shown = *event;

	if (event->type == MOVER_CONNECTED)
		shown.path = path_taken(show, event->path);
	if (event->type == MOVER_CONNECTED || event->type == MOVER_PROGRESS)
		count_resent(show, event);
	(show->json ? show_json : show_people)(show, &shown);
}

void show_ticket(struct show *show, const struct mover_ticket *ticket, const char *file)
{
	(show->json ? show_json_ticket : show_people_ticket)(show, ticket, file);
}

void show_open(struct show *show, const struct mover_ticket *ticket)
{
	if (!show->json)
		show_people_open(show, ticket);
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
