/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints events as JSON, one object per line. roci-send(1) lists the members. */
#include <string.h>
#include <stdlib.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "device.h"
#include "explain_hint.h"
#include "explain_say.h"
#include "json_line.h"
#include "show.h"
#include "text.h"

static void put_string(json_t *object, const char *member, const char *value)
{
	if (value)
		json_object_set_new(object, member, json_string(value));
}

static void put_number(json_t *object, const char *member, uint64_t value)
{
	json_object_set_new(object, member, json_integer((json_int_t)value));
}

/* For text with names in it: those may have bytes that are not UTF-8. */
static void put_text(json_t *object, const char *member, const void *bytes, size_t len)
{
	json_t *text = json_line_text(bytes, len);

	if (text)
		json_object_set_new(object, member, text);
}

static void put_name(json_t *object, const uint8_t *name, size_t len)
{
	put_text(object, "name", name, len);
	if (text_is_utf8(name, len))
		return;
	unsigned char *base64 = malloc((len + 2) / 3 * 4 + 1);
	if (base64) {
		EVP_EncodeBlock(base64, name, (int)len);
		put_string(object, "name_base64", (const char *)base64);
	}
	free(base64);
}

static void put_totals(json_t *object, const struct mover_totals *t)
{
	put_number(object, "entries_total", t->entries_total);
	put_number(object, "entries_done", t->entries_done);
	put_number(object, "entries_unchanged", t->entries_unchanged);
	put_number(object, "entries_failed", t->entries_failed);
	put_number(object, "bytes_total", t->bytes_total);
	put_number(object, "bytes_done", t->bytes_done);
	put_number(object, "bytes_moved", t->bytes_moved);
	put_number(object, "bytes_kept", t->bytes_kept);
	put_number(object, "bytes_unchanged", t->bytes_unchanged);
	json_object_set_new(object, "seconds", json_real((double)t->elapsed_ns / 1e9));
}

static void put_device(json_t *object, const struct show *show, const struct mover_event *event)
{
	put_string(object, "device", event->device);
	put_string(object, "path", event->path);
	json_object_set_new(object, "embedded", json_boolean(show->device->embedded));
	if (*show->device->reason)
		put_text(object, "reason", show->device->reason, strlen(show->device->reason));
	put_string(object, "address", event->address);
	put_number(object, "port", event->port);
}

static json_t *begin(const char *name, unsigned session)
{
	json_t *object = json_line(name);
	if (session)
		put_number(object, "session", session);
	return object;
}

void show_json(struct show *show, const struct mover_event *event)
{
	json_t *object = begin(mover_event_name(event->type), event->session);

	switch (event->type) {
	case MOVER_LISTENING: put_device(object, show, event); break;
	case MOVER_CONNECTED:
		put_device(object, show, event);
		put_string(object, "mode", mover_mode_name(event->mode));
		put_number(object, "qps", event->qps);
		json_object_set_new(object, "encrypted", json_boolean(event->encrypted));
		json_object_set_new(object, "open", json_boolean(event->open));
		json_object_set_new(object, "dry_run", json_boolean(event->dry_run));
		break;
	case MOVER_ENTRY_DONE:
		put_string(object, "outcome", mover_outcome_name(event->outcome));
		put_name(object, event->name, event->name_len);
		put_number(object, "bytes", event->bytes);
		break;
	case MOVER_ENDED:
		put_string(object, "status", mover_status_name(event->status));
		put_number(object, "exit_status", event->status);
		explain_say_json(object, explain_hint(event->status, event->text));
		put_totals(object, &event->totals);
		if (event->part_file) {
			put_text(object, "part_file", event->part_file, strlen(event->part_file));
			put_number(object, "part_files", event->part_files);
		}
		break;
	case MOVER_RECONNECTING:
		json_object_set_new(object, "seconds_left", json_real((double)event->left_ns / 1e9));
		put_totals(object, &event->totals);
		break;
	case MOVER_PROGRESS:
		put_totals(object, &event->totals);
		json_object_set_new(object, "bytes_per_second", json_real(event->bytes_per_s));
		if (event->round_trip_ns)
			json_object_set_new(object, "round_trip_seconds",
					    json_real((double)event->round_trip_ns / 1e9));
		if (show->resent_known)
			put_number(object, "packets_resent", show->resent);
		break;
	case MOVER_OFFERED: put_totals(object, &event->totals); break;
	default: break;
	}
	if (event->text)
		put_text(object, "text", event->text, strlen(event->text));
	json_line_print(object, show->list);
}

void show_json_ticket(struct show *show, const struct mover_ticket *ticket, const char *file)
{
	json_t *object = begin("ticket", 0);
	char line[MOVER_TICKET_CHARS];

	if (file) {
		put_text(object, "file", file, strlen(file));
	} else {
		mover_ticket_print(ticket, line);
		put_string(object, "ticket", line);
	}
	json_line_print(object, show->list);
}
