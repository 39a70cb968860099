/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/msg.h"
#include "device/gsi.h"

#define ADDRESS "127.77.0.5"
#define MEMBERS 6

static struct roci_datagram in[ROCI_LINK_RECV_BATCH];
static struct outgoing out;

/* A process that shares the address. It answers each byte on the pipe with how many packets have arrived: its own, and
 * those of others. */
struct member {
	pid_t pid;
	unsigned slot;
	int ask, answer;
};

struct tally {
	unsigned right, wrong;
};

/* The slot that the packet is for. */
static unsigned slot_of(const struct station *s, const struct roci_datagram *d)
{
	struct roci_packet packet;
	struct roci_cm_msg msg;

	assert_int_equal(roci_packet_parse(&packet, d->bytes, d->len), ROCI_PARSE_OK);
	if (packet.dest_qpn != ROCI_QPN_GSI)
		return roci_slot_of(&s->registry.slot_key, packet.dest_qpn);
	assert_int_equal(roci_cm_msg_parse(&msg, packet.payload), ROCI_CM_PARSE_OK);
	return (msg.attribute == ROCI_CM_ATTR_SIDR_REP ? msg.local_id : msg.remote_id) >> ROCI_COMM_SLOT_SHIFT;
}

static void member_main(int asked, int answer)
{
	struct station s;
	struct tally tally;
	unsigned n;
	char byte;

	station_open(&s, ADDRESS);
	if (roci_udp_listen(s.udp, 0) || write(answer, &s.registry.slot, sizeof(s.registry.slot)) < 0)
		_exit(1);
	while (read(asked, &byte, 1) == 1 && byte != 'q') { /* no end of file: siblings hold the pipe too */
		if (byte == 'r')
			roci_udp_repair(s.udp);
		tally = (struct tally){0};
		while ((n = roci_link_recv(s.link, in)))
			for (unsigned i = 0; i < n; i++)
				if (slot_of(&s, &in[i]) == s.registry.slot)
					tally.right++;
				else
					tally.wrong++;
		if (write(answer, &tally, sizeof(tally)) < 0)
			_exit(1);
	}
	station_close(&s);
	_exit(0);
}

static void start_member(struct member *m)
{
	int ask[2], answer[2];

	assert_int_equal(pipe(ask) | pipe(answer), 0);
	m->pid = fork();
	if (!m->pid) {
		close(ask[1]);
		close(answer[0]);
		member_main(ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	m->ask = ask[1];
	m->answer = answer[0];
	assert_int_equal(read(m->answer, &m->slot, sizeof(m->slot)), sizeof(m->slot));
}

static void stop_member(struct member *m, bool kill_it)
{
	if (kill_it)
		kill(m->pid, SIGKILL);
	else
		assert_int_equal(write(m->ask, "q", 1), 1);
	close(m->ask);
	close(m->answer);
	waitpid(m->pid, NULL, 0);
	m->pid = 0;
}

static struct tally ask(const struct member *m, char what)
{
	struct tally tally = {0};

	assert_int_equal(write(m->ask, &what, 1), 1);
	assert_int_equal(read(m->answer, &tally, sizeof(tally)), sizeof(tally));
	return tally;
}

/* Sends 40 packets to each living member; returns how many went to another one. None may be lost. */
static unsigned misdirected(struct station *from, const struct member *members)
{
	struct tally sum = {0};
	unsigned sent = 0;

	for (unsigned round = 0; round < 10; round++) {
		outgoing_start(&out, from, ADDRESS);
		for (unsigned i = 0; i < 4 * MEMBERS; i++)
			if (members[i % MEMBERS].pid) {
				outgoing_add(&out, qpn_of(from, members[i % MEMBERS].slot, 7 * i), i, 64);
				sent++;
			}
		outgoing_send(&out, from->link);
	}
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct tally t = {0};

		if (members[i].pid)
			t = ask(&members[i], 'a');
		sum.right += t.right;
		sum.wrong += t.wrong;
	}
	assert_int_equal(sum.right + sum.wrong, sent);
	return sum.wrong;
}

/* A message to `slot`. */
static void send_mad(struct station *from, enum roci_cm_attribute attribute, unsigned slot)
{
	uint8_t mad[ROCI_CM_MAD_BYTES];
	uint32_t ours = slot << ROCI_COMM_SLOT_SHIFT | 77, other = 1000u << ROCI_COMM_SLOT_SHIFT;
	bool sidr = attribute == ROCI_CM_ATTR_SIDR_REP;
	struct roci_cm_msg msg = {
		.attribute = attribute, .local_id = sidr ? ours : other, .remote_id = sidr ? 0 : ours};

	roci_cm_msg_build(&msg, mad);
	outgoing_start(&out, from, ADDRESS);
	outgoing_add_mad(&out, mad);
	outgoing_send(&out, from->link);
}

/* Every message but those that begin an exchange, to every member. */
static void messages_reach_the_owner_of_the_communication_id(void **state)
{
	struct member members[MEMBERS];
	struct tally sum = {0};
	struct station from;
	unsigned sent = 0;

	station_open(&from, "127.77.0.6");
	assert_int_equal(roci_udp_listen(from.udp, 0), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		start_member(&members[i]);
	for (unsigned attribute = ROCI_CM_ATTR_MRA; attribute <= ROCI_CM_ATTR_APR; attribute++) {
		if (attribute == ROCI_CM_ATTR_SIDR_REQ)
			continue;
		for (unsigned i = 0; i < MEMBERS; i++, sent++)
			send_mad(&from, attribute, members[i].slot);
	}
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct tally t = ask(&members[i], 'a');

		sum.right += t.right;
		sum.wrong += t.wrong;
		stop_member(&members[i], false);
	}
	assert_int_equal(sum.right, sent);
	assert_int_equal(sum.wrong, 0);
	station_close(&from);
}

/* From one address and port, as a host that asks again sends them: a process that is stopped may have got the first. */
static void requests_that_are_sent_again_reach_everybody(void **state)
{
	struct member members[2];
	struct station from;
	unsigned sent = 0;

	station_open(&from, "127.77.0.6");
	assert_int_equal(roci_udp_listen(from.udp, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		start_member(&members[i]);
	for (; sent < 60; sent += 2) { /* by chance all reach one of them once in 2^59 runs */
		send_mad(&from, ROCI_CM_ATTR_REQ, members[0].slot);
		send_mad(&from, ROCI_CM_ATTR_SIDR_REQ, members[0].slot);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct tally t = ask(&members[i], 'a');

		assert_in_range(t.right + t.wrong, 1, sent - 1);
		stop_member(&members[i], false);
	}
	station_close(&from);
}

static void packets_reach_the_owner_of_the_qpn(void **state)
{
	struct member members[MEMBERS];
	struct station from;

	station_open(&from, "127.77.0.6");
	assert_int_equal(roci_udp_listen(from.udp, 0), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		start_member(&members[i]);
	assert_int_equal(misdirected(&from, members), 0);

	/* Members leave, first, middle, last; the program follows. */
	stop_member(&members[0], false);
	assert_int_equal(misdirected(&from, members), 0);
	stop_member(&members[3], false);
	stop_member(&members[5], false);
	assert_int_equal(misdirected(&from, members), 0);
	start_member(&members[3]);
	start_member(&members[0]);
	assert_int_equal(misdirected(&from, members), 0);

	/* One is killed: nobody notices until somebody joins or repairs. */
	stop_member(&members[1], true);
	misdirected(&from, members);
	ask(&members[2], 'r');
	assert_int_equal(misdirected(&from, members), 0);
	stop_member(&members[2], true);
	start_member(&members[5]);
	assert_int_equal(misdirected(&from, members), 0);

	for (unsigned i = 0; i < MEMBERS; i++)
		if (members[i].pid)
			stop_member(&members[i], false);
	/* All are gone; a new one is alone. */
	start_member(&members[2]);
	assert_int_equal(misdirected(&from, members), 0);
	stop_member(&members[2], false);
	station_close(&from);
}

/* The lock lives as long as the open file, and that as long as its mapping. */
static void lose_slot(struct station *s)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(dup3(fd, s->registry.fd, O_CLOEXEC), s->registry.fd);
	close(fd);
	assert_ptr_equal(mmap(s->registry.file, sizeof(*s->registry.file), PROT_READ | PROT_WRITE,
			      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			 s->registry.file);
}

/* The kernel releases the lock of a process that ends before it closes its sockets, or the other way round. The first
 * to join removes it from the group; its socket is there a moment longer, for the second. */
static void a_process_that_is_ending_is_no_stranger(void **state)
{
	struct station ending, first, second;

	station_open(&ending, ADDRESS);
	assert_int_equal(roci_udp_listen(ending.udp, 0), 0);
	lose_slot(&ending);
	station_open(&first, ADDRESS);
	assert_int_equal(roci_udp_listen(first.udp, 0), 0);
	station_open(&second, ADDRESS);
	assert_int_equal(roci_udp_listen(second.udp, 0), 0);
	station_close(&second);
	station_close(&first);
	station_close(&ending);
}

/* It is in no group then. Those who come when the lock is free again share the port with it. */
static void who_bound_without_the_lock_is_no_stranger(void **state)
{
	struct station stopped, hasty, later;

	station_open(&stopped, "127.77.0.6");
	station_open(&hasty, ADDRESS);
	assert_int_equal(roci_registry_lock(&stopped.registry), 0);
	assert_int_equal(roci_udp_listen(hasty.udp, 0), 0);
	roci_registry_unlock(&stopped.registry);
	station_open(&later, ADDRESS);
	assert_int_equal(roci_udp_listen(later.udp, 0), 0);
	station_close(&later);
	station_close(&hasty);
	station_close(&stopped);
}

/* Their groups are all that the registry has room for. */
static void addresses_where_processes_were_killed_are_forgotten(void **state)
{
	struct member members[MEMBERS] = {0};
	struct station from, killed;
	char address[16];

	for (unsigned i = 0; i < ROCI_STEERED_GROUPS; i++) {
		snprintf(address, sizeof(address), "127.77.1.%u", i);
		station_open(&killed, address);
		assert_int_equal(roci_udp_listen(killed.udp, 0), 0);
		lose_slot(&killed);
		station_close(&killed);
	}
	station_open(&from, "127.77.0.6");
	assert_int_equal(roci_udp_listen(from.udp, 0), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		start_member(&members[i]);
	assert_int_equal(misdirected(&from, members), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		stop_member(&members[i], false);
	station_close(&from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_are_sent_again_reach_everybody),
		cmocka_unit_test(packets_reach_the_owner_of_the_qpn),
		cmocka_unit_test(messages_reach_the_owner_of_the_communication_id),
		cmocka_unit_test(a_process_that_is_ending_is_no_stranger),
		cmocka_unit_test(who_bound_without_the_lock_is_no_stranger),
		cmocka_unit_test(addresses_where_processes_were_killed_are_forgotten),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
