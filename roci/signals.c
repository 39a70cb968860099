/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <stddef.h>

#include "signals.h"

static void (*on_stop)(void);

static void on_signal(int signal)
{
	on_stop();
}

void signals_catch(void (*stop)(void))
{
	static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)}, before;

	on_stop = stop;
	for (size_t i = 0; i < sizeof(stopping) / sizeof(stopping[0]); i++) {
		if (!sigaction(stopping[i], NULL, &before) && before.sa_handler != SIG_IGN) /* nohup(1) still works */
			sigaction(stopping[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
}
