/* SPDX-License-Identifier: BSD-2-Clause */
/* The device while the addresses of its namespace change, with a netlink socket that works, overruns, or is refused. */
#include "bench.h"

#include <dlfcn.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "device/device_state.h"
#include "device/progress.h"

#define LIMIT_NS 20000000000u /* only ends a hang */

static atomic_bool refused, overrun; /* the netlink socket */
static atomic_int netlink_fd = -1;
static atomic_uint gid_changes, port_downs, port_ups;

/* The calls of the device, which go to the kernel (sys.h), come by here. */
long syscall(long number, ...)
{
	static long (*next)(long, ...);
	bool netlink;
	va_list list;
	long a[6], got;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	netlink = number == SYS_socket && a[0] == AF_NETLINK;
	if (netlink && atomic_load(&refused)) {
		errno = EPERM;
		return -1;
	}
	got = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (netlink)
		atomic_store(&netlink_fd, (int)got);
	/* Instead of a message: some were lost. */
	if (number == SYS_recvfrom && a[0] == atomic_load(&netlink_fd) && got >= 0 && atomic_load(&overrun)) {
		errno = ENOBUFS;
		return -1;
	}
	return got;
}

static atomic_bool deaf; /* the thread does not learn from epoll that the netlink socket is readable */

int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout, const sigset_t *mask)
{
	static int (*next)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
	int n;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "epoll_pwait2");
	n = next(fd, events, max, timeout, mask);
	for (int i = 0; i < n && atomic_load(&deaf); i++)
		if (events[i].data.u64 == ROCI_PROGRESS_ADDRESSES)
			events[i--] = events[--n];
	return n;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static atomic_bool held;     /* a thread that reads the addresses stays there, if it is alone */
static atomic_uint reading;  /* threads */
static atomic_bool together; /* two did */

int getifaddrs(struct ifaddrs **all)
{
	static int (*next)(struct ifaddrs **);
	int err = -1;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "getifaddrs");
	if (atomic_fetch_add(&reading, 1))
		atomic_store(&together, true);
	else
		while (atomic_load(&held))
			nap();
	if (!atomic_load(&refused))
		err = next(all);
	else
		errno = EAFNOSUPPORT;
	atomic_fetch_sub(&reading, 1);
	return err;
}

static void on_event(const struct roci_event *ev)
{
	if (ev->kind != ROCI_EV_ASYNC)
		return;
	switch (ev->type) {
	case ROCI_EVENT_GID_CHANGE: atomic_fetch_add(&gid_changes, 1); break;
	case ROCI_EVENT_PORT_ERR: atomic_fetch_add(&port_downs, 1); break;
	case ROCI_EVENT_PORT_ACTIVE: atomic_fetch_add(&port_ups, 1); break;
	default: break;
	}
}

static struct roci_device *open_device(void)
{
	struct roci_device *dev;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	return dev;
}

/* Returns the index of an address; -1: the device does not have it. Waits until it has it or has it not. */
static int wait_address(struct roci_device *dev, const char *text, bool there)
{
	uint64_t end = roci_now() + LIMIT_NS;
	uint8_t gid[16];
	int index;

	gid_of(text, gid);
	while (((index = roci_device_find_gid(dev, gid, 0)) >= 0) != there) {
		assert_true(roci_now() < end);
		nap();
	}
	return index;
}

static void wait_count(const atomic_uint *count, unsigned wanted)
{
	uint64_t end = roci_now() + LIMIT_NS;

	while (atomic_load(count) < wanted) {
		assert_true(roci_now() < end);
		nap();
	}
}

static void must(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* Addresses are changed only in a network namespace of our own. */
static bool is_own;

static int own_namespace(void **state)
{
	char before[64] = "", after[64] = "";
	int err;

	(void)!readlink("/proc/self/ns/net", before, sizeof(before) - 1);
	err = private_rundir(state);
	(void)!readlink("/proc/self/ns/net", after, sizeof(after) - 1);
	is_own = strcmp(before, after) &&
		 !system("(ip addr add 10.77.0.9/24 dev lo && ip addr del 10.77.0.9/24 dev lo) 2>/dev/null");
	return err;
}

static int skip_elsewhere(void **state)
{
	if (!is_own)
		skip();
	return 0;
}

static void the_table_follows(void **state)
{
	struct roci_device *dev = open_device();
	unsigned changes = atomic_load(&gid_changes);
	int index;

	must("ip addr add 10.77.0.1/24 dev lo");
	index = wait_address(dev, "10.77.0.1", true);
	must("ip addr del 10.77.0.1/24 dev lo");
	wait_address(dev, "10.77.0.1", false);
	must("ip addr add 10.77.0.1/24 dev lo");
	assert_int_equal(wait_address(dev, "10.77.0.1", true), index);
	wait_count(&gid_changes, changes + 3);
	must("ip addr del 10.77.0.1/24 dev lo");
	roci_device_put(dev);
}

static void the_port_follows(void **state)
{
	struct roci_device *dev = open_device();
	unsigned downs = atomic_load(&port_downs), ups = atomic_load(&port_ups);

	must("ip link set lo down");
	wait_count(&port_downs, downs + 1);
	wait_address(dev, "127.0.0.1", false);
	must("ip link set lo up");
	wait_count(&port_ups, ups + 1);
	assert_int_equal(wait_address(dev, "127.0.0.1", true), 0);
	assert_int_equal(atomic_load(&port_downs), downs + 1);
	assert_int_equal(atomic_load(&port_ups), ups + 1);
	roci_device_put(dev);
}

static void an_overrun_is_a_change(void **state)
{
	struct roci_device *dev = open_device();

	atomic_store(&overrun, true);
	must("ip addr add 10.77.0.2/24 dev lo");
	wait_address(dev, "10.77.0.2", true);
	must("ip addr del 10.77.0.2/24 dev lo");
	wait_address(dev, "10.77.0.2", false);
	atomic_store(&overrun, false);
	roci_device_put(dev);
}

/* So it is while the thread naps, because the program polls, or drives without a pause: nothing wakes it. */
static void a_thread_that_does_not_sleep_looks(void **state)
{
	struct roci_device *dev = open_device();

	atomic_store(&deaf, true);
	must("ip addr add 10.77.0.3/24 dev lo");
	wait_address(dev, "10.77.0.3", true);
	must("ip addr del 10.77.0.3/24 dev lo");
	wait_address(dev, "10.77.0.3", false);
	atomic_store(&deaf, false);
	roci_device_put(dev);
}

/* Any thread that drives the device looks. More changes while one of them reads the addresses. */
static void one_thread_looks(void **state)
{
	struct roci_device *dev = open_device();

	atomic_store(&held, true);
	must("ip addr add 10.77.0.1/24 dev lo");
	wait_count(&reading, 1);
	must("ip addr add 10.77.0.2/24 dev lo");
	roci_device_lock(dev);
	roci_addresses_ready(&dev->addresses);
	roci_addresses_look(dev, roci_now());
	roci_device_unlock(dev);
	atomic_store(&held, false);
	wait_address(dev, "10.77.0.1", true);
	wait_address(dev, "10.77.0.2", true);
	assert_false(atomic_load(&together));
	must("ip addr del 10.77.0.2/24 dev lo && ip addr del 10.77.0.1/24 dev lo");
	roci_device_put(dev);
}

/* And it is the same table as with netlink. */
static void without_netlink_the_table_stays(void **state)
{
	struct roci_gids before, after;
	struct roci_device *dev;

	must("ip addr add 10.77.0.8/24 dev lo");
	dev = open_device();
	roci_device_gids(dev, &after);
	roci_device_put(dev);
	atomic_store(&refused, true);
	dev = open_device();
	roci_device_gids(dev, &before);
	assert_int_equal(before.count, 3); /* 10.77.0.8, 127.0.0.1, ::1 */
	assert_memory_equal(&before, &after, sizeof(before));
	must("ip addr add 10.77.0.4/24 dev lo");
	for (unsigned i = 0; i < 200; i++)
		nap();
	roci_device_gids(dev, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	roci_device_put(dev);
	atomic_store(&refused, false);
	dev = open_device();
	wait_address(dev, "10.77.0.4", true);
	roci_device_put(dev);
	must("ip addr del 10.77.0.4/24 dev lo && ip addr del 10.77.0.8/24 dev lo");
}

/* Its index goes to no other address. */
static void an_index_that_is_held_stays(void **state)
{
	struct roci_device *dev = open_device();
	int index;

	must("ip addr add 10.77.0.5/24 dev lo");
	index = wait_address(dev, "10.77.0.5", true);
	roci_device_hold_gid(dev, (unsigned)index);
	must("ip addr del 10.77.0.5/24 dev lo && ip addr add 10.77.0.6/24 dev lo");
	assert_true(wait_address(dev, "10.77.0.6", true) != index);
	must("ip addr add 10.77.0.5/24 dev lo");
	assert_int_equal(wait_address(dev, "10.77.0.5", true), index);
	must("ip addr del 10.77.0.5/24 dev lo");
	wait_address(dev, "10.77.0.5", false);
	roci_device_release_gid(dev, (unsigned)index);
	must("ip addr add 10.77.0.7/24 dev lo");
	assert_int_equal(wait_address(dev, "10.77.0.7", true), index);
	must("ip addr flush dev lo && ip addr add 127.0.0.1/8 dev lo");
	roci_device_put(dev);
}

/* An RC QP that sends from GID `index`. */
static struct roci_qp *connect_qp(struct roci_device *dev, int index, uint32_t *qpn, struct roci_cq **cq)
{
	struct roci_ah_params ah = {.sgid_index = (uint8_t)index, .hop_limit = 64};
	struct roci_engine *e = roci_device_lock(dev);
	struct roci_qp_init init = {.type = ROCI_QPT_RC, .pd = 1, .cap = {16, 16, 1, 1, 0}};
	struct roci_qp_attr attr = {.state = ROCI_QPS_INIT, .port_num = 1, .path_mtu = 1, .dest_qpn = 77};
	struct roci_qp *qp;

	gid_of("10.77.0.99", ah.dgid);
	assert_int_equal(roci_cq_create(e, 16, NULL, cq), 0);
	assert_int_equal(roci_device_alloc_qpn(dev, qpn), 0);
	init.qpn = *qpn;
	init.send_cq = init.recv_cq = *cq;
	assert_int_equal(roci_qp_create(e, &init, &qp), 0);
	assert_int_equal(roci_qp_modify(qp, roci_now(), &attr,
					ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
			 0);
	attr.state = ROCI_QPS_RTR;
	assert_int_equal(roci_device_make_av(dev, &ah, &attr.av), 0);
	assert_int_equal(roci_qp_modify(qp, roci_now(), &attr,
					ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
						ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
			 0);
	roci_device_unlock(dev);
	return qp;
}

static void an_index_that_a_qp_has_stays(void **state)
{
	struct roci_device *dev = open_device();
	struct roci_cq *cq;
	struct roci_qp *qp;
	uint32_t qpn;
	int index;

	must("ip addr add 10.77.0.1/24 dev lo");
	index = wait_address(dev, "10.77.0.1", true);
	qp = connect_qp(dev, index, &qpn, &cq);
	must("ip addr del 10.77.0.1/24 dev lo && ip addr add 10.77.0.2/24 dev lo");
	assert_true(wait_address(dev, "10.77.0.2", true) != index);
	roci_device_lock(dev);
	roci_qp_destroy(qp);
	roci_device_free_qpn(dev, qpn);
	roci_cq_destroy(cq);
	roci_device_unlock(dev);
	must("ip addr add 10.77.0.3/24 dev lo");
	assert_int_equal(wait_address(dev, "10.77.0.3", true), index);
	must("ip addr flush dev lo && ip addr add 127.0.0.1/8 dev lo");
	roci_device_put(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_table_follows, skip_elsewhere),
		cmocka_unit_test_setup(the_port_follows, skip_elsewhere),
		cmocka_unit_test_setup(an_overrun_is_a_change, skip_elsewhere),
		cmocka_unit_test_setup(a_thread_that_does_not_sleep_looks, skip_elsewhere),
		cmocka_unit_test_setup(one_thread_looks, skip_elsewhere),
		cmocka_unit_test_setup(without_netlink_the_table_stays, skip_elsewhere),
		cmocka_unit_test_setup(an_index_that_is_held_stays, skip_elsewhere),
		cmocka_unit_test_setup(an_index_that_a_qp_has_stays, skip_elsewhere),
	};

	return cmocka_run_group_tests(tests, own_namespace, remove_rundir);
}
