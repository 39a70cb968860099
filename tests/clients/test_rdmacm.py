# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs that connect through rdma_cm: rping, ucmatose, udaddy, rdma_client, cmtime, mckey, perftest -R, qperf, fio.

The first argument is the network: `loopback`, `one` (both programs on the address of one host), `veth4` or `veth6`.
"""
import os
import re
import sys
import tempfile
import time

import test_pyverbs
from cm_server import serve
from harness import DEVICE, Host, Skip, check, isolate, need, next_port, program, run_pair, tap, veth_pair, wait_until


def pair(server_argv, client_argv, seconds=60):
    server = serve(server_host, *server_argv)
    return run_pair(server, client_host.start(*client_argv), seconds)


# ---- rdmacm-utils ----

def rping(*args):
    port = ['-p', str(next_port())]
    server, client = pair(['rping', '-s', '-a', address, *port, *args], ['rping', '-c', '-a', address, *port, *args])
    return f'{len(client.splitlines())} lines' if '-v' in args else ''


# rping of rdma-core 44 closes the event channel that its other thread may be about to read. Later versions wait for that thread.
# It happens at the end of main(), when everything has been verified.
RPING_RACE = 'rdma_get_cm_event: Bad file descriptor'


def succeeded(client, status):
    own = re.sub(r'^roci: \w+ +\d+\n', '', client.text(), flags=re.M)  # without the device's counters (ROCI_STATS)
    return status == 0 or (status == 255 and own.strip() == RPING_RACE)


def rping_persistent(count):
    """One server and `count` clients at the same time."""
    port = ['-p', str(next_port())]
    server = serve(server_host, 'rping', '-s', '-P', '-a', address, *port)
    clients = [client_host.start('rping', '-c', '-a', address, '-V', '-C', '20', *port) for _ in range(count)]
    try:
        ends = time.monotonic() + 60
        states = [client.wait(max(1, ends - time.monotonic())) for client in clients]
        failed = [client.report() for client, status in zip(clients, states) if not succeeded(client, status)]
        check(not failed, '\n'.join([*failed, server.report()]))
        check(server.running(), server.report())
    finally:
        for client in clients:
            client.end()
        server.end()


def rping_too_big():
    """The client's buffer is larger than the server's. The server sees LOC_PROT_ERR, and neither program hangs."""
    port = ['-p', str(next_port())]
    server = serve(server_host, 'rping', '-s', '-a', address, '-S', '100', *port)
    client = client_host.start('rping', '-c', '-a', address, '-S', '1000', '-C', '3', *port)
    try:
        client.wait(30)
        check(server.wait(30) is not None, server.report())
        check('cq completion failed status 4' in server.text(), server.report())
    finally:
        client.end()
        server.end()


def rping_no_listener():
    """Nobody listens on the port. Another process on that host, which listens on another port, sends the refusal."""
    other = serve(server_host, 'rping', '-s', '-a', address, '-p', str(next_port()))
    process = client_host.start('rping', '-c', '-a', address, '-p', str(next_port()), '-C', '1')
    try:
        check(process.wait(20) not in (0, None), process.report())
        check('RDMA_CM_EVENT_REJECTED, error 8' in process.text(), process.report())
    finally:
        other.end()


def late_listener(space, where):
    server_host.call(program('late_listener'), address, space, where)


def ucmatose(*args):
    port = ['-p', str(next_port())]
    texts = pair(['ucmatose', '-b', address, *port, *args], ['ucmatose', '-s', address, *port, *args], 120)
    for text in texts:
        check('test complete' in text and 'return status 0' in text, '\n'.join(texts))


def udaddy(*args):
    """The port of udaddy is fixed, and it does not repeat datagrams."""
    texts = pair(['udaddy', '-b', address, *args], ['udaddy', '-s', address, *args], 60)
    for text in texts:
        check('test complete' in text and 'return status 0' in text, '\n'.join(texts))


def rdma_client():
    port = ['-p', str(next_port())]
    at = ['-s', address, *port]
    texts = pair(['rdma_server', *at], ['rdma_client', *at])
    check('rdma_client: end 0' in texts[1] and 'rdma_server: end 0' in texts[0], '\n'.join(texts))


def rdma_xclient(kind):
    if kind == 'x':
        raise Skip('XRC is not supported')
    if ':' in address:
        raise Skip('its server listens on the first address of getaddrinfo(NULL), which is IPv4')
    port = ['-p', str(next_port())]
    texts = pair(['rdma_xserver', *port, '-c', kind], ['rdma_xclient', '-s', address, *port, '-c', kind])
    check('rdma_xclient: end 0' in texts[1] and 'rdma_xserver: end 0' in texts[0], '\n'.join(texts))


def cmtime(count):
    port = ['-p', str(next_port())]
    server = serve(server_host, 'cmtime', '-b', address, '-c', str(count), *port)
    try:
        text = client_host.call('cmtime', '-s', address, '-c', str(count), *port, seconds=120)
    finally:
        server.end()  # it serves forever
    check('disconnect' in text, text)
    return text


def mckey(group, *args):
    """A receiver and a sender in one group. The sender does not wait for a receiver, so the receiver starts first."""
    receiver = serve(server_host, 'mckey', '-m', group, '-b', server_address, *args)
    sender = client_host.start('mckey', '-m', group, '-b', client_address, '-s', *args)
    texts = run_pair(receiver, sender)
    for text in texts:
        check('test complete' in text and 'return status 0' in text, '\n'.join(texts))


# ---- other programs ----

def perftest(program, *args):
    if ':' in address:
        raise Skip('with -R it resolves IPv4 addresses only')
    port = ['-p', str(next_port())]
    argv = [program, '-R', '-F', '-d', DEVICE, *args, *port]
    pair(argv, [*argv, address], 90)


def perftest_uc():
    raise Skip('perftest itself refuses: "UC is not supported in librdmacm"')


def qperf(test):
    need('qperf')
    if test[:2] in ('uc', 'ud'):
        raise Skip('it does not use rdma_cm for UC and UD; without rdma_cm it needs LIDs, which Ethernet does not have')
    port = ['-lp', str(next_port())]
    server = server_host.start('qperf', *port)
    try:
        wait_until('qperf to listen', lambda: server_host.listens(int(port[1])) or not server.running())
        return client_host.call('qperf', server_host.address, *port, '-t', '1', '-cm', '1', test)
    finally:
        server.end()


def fio(verb):
    """Memory semantics (write, read) and channel semantics (send). fio's sender allows no RNR retries, so the receiver must
    post a receive in time: its depth must be greater than the sender's, as fio's source says. Here it covers all messages."""
    need('fio')
    if ':' in address:
        raise Skip('it resolves IPv4 addresses only')
    port = str(next_port())
    with tempfile.TemporaryDirectory() as directory:
        common = ['--ioengine=rdma', f'--port={port}', '--bs=64k', '--size=16m', '--name=job']
        depth = 256 if verb == 'send' else 8
        server = server_host.start('fio', *common, '--rw=read', f'--iodepth={depth}', f'--aux-path={directory}')
        wait_until('fio to listen', lambda: 'waiting for connection' in server.text() or not server.running())
        client = client_host.start('fio', *common, '--rw=write', '--iodepth=8', f'--verb={verb}', f'--hostname={address}',
                                   f'--aux-path={directory}')
        run_pair(server, client)


# ---- rsockets ----

def rsocket(program, *args):
    """Runs a program with the same arguments on both sides."""
    port = ['-p', str(next_port())]
    server_argv, client_argv = [program, '-b', address, *port, *args], [program, '-s', address, *port, *args]
    if '-T f' not in ' '.join(args):
        pair(server_argv, client_argv, 90)
        return
    server = server_host.start(*server_argv)  # its children listen behind a TCP port
    try:
        wait_until('the TCP port', lambda: server_host.listens(int(port[1])) or not server.running())
        run_pair(server, client_host.start(*client_argv), 90)
    finally:
        server.end()


def udpong(*args):
    port = ['-p', str(next_port())]
    server = server_host.start('udpong', '-b', address, *port, *args)
    try:
        time.sleep(0.5)
        return client_host.call('udpong', '-s', address, *port, *args)
    finally:
        server.end()  # it serves forever


def rcopy():
    if ':' in address:
        raise Skip('it takes the text before the first colon for the address')
    port = ['-p', str(next_port())]
    with tempfile.TemporaryDirectory() as directory:
        source, target = f'{directory}/source', f'{directory}/target'
        with open(source, 'wb') as f:
            f.write(os.urandom(5000000))
        server = serve(server_host, 'rcopy', *port)
        try:
            client_host.call('rcopy', source, f'{address}:{target}', *port)
        finally:
            server.end()
        with open(source, 'rb') as one, open(target, 'rb') as two:
            check(one.read() == two.read(), 'the copy differs')


def own_rsocket_test(name):
    server_host.call(program(name), address, seconds=200)


# ---- rdma-core's own tests ----

def pyverbs():
    """Runs the ten rdma_cm tests of rdma-core."""
    results = test_pyverbs.run_tests(server_host, DEVICE, 'tests.test_rdmacm', address=address)
    check([outcome for outcome, _, _ in results] == ['pass'] * 10, '\n'.join(map(str, results)))


def cases():
    yield 'rping', lambda: rping('-v', '-V', '-C', '10')
    yield 'rping -S 60000', lambda: rping('-V', '-C', '50', '-S', '60000')
    yield 'rping -q', lambda: rping('-V', '-C', '10', '-q')
    yield 'rping, persistent server, 100 clients', lambda: rping_persistent(100)
    yield 'rping, mismatched -S', rping_too_big
    yield 'rping without a server', rping_no_listener
    if server_host is client_host:
        for where in ('here', 'there'):
            for space in ('tcp', 'udp'):
                yield f'late_listener {space} {where}', lambda s=space, w=where: late_listener(s, w)
    for args in ('', '-c 10', '-c 100 -C 5', '-t 32', '-S 50000', '-C 0', '-P ib', '-m', '-a 14'):
        yield f'ucmatose {args}'.rstrip(), lambda a=args: ucmatose(*a.split())
    for args in ('', '-c 10', '-S 512 -C 5', '-t 32'):
        yield f'udaddy {args}'.rstrip(), lambda a=args: udaddy(*a.split())
    yield 'rdma_client', rdma_client
    for kind in ('r', 'x'):
        yield f'rdma_xclient -c {kind}', lambda k=kind: rdma_xclient(k)
    for count in (1, 100):
        yield f'cmtime -c {count}', lambda c=count: cmtime(c)
    group = 'ff0e::7:%d' if ':' in address else '239.77.0.%d'
    yield 'mckey', lambda: mckey(group % 1)
    yield 'mckey -c 5', lambda: mckey(group % 2, '-c', '5')
    for program in ('ib_send_bw', 'ib_send_lat', 'ib_write_bw', 'ib_write_lat', 'ib_read_bw', 'ib_read_lat',
                    'ib_atomic_bw', 'ib_atomic_lat'):
        yield f'{program} -R', lambda p=program: perftest(p, '-n', '100')
    yield 'ib_send_bw -R -c UD', lambda: perftest('ib_send_bw', '-c', 'UD', '-n', '100', '-s', '1024')
    yield 'ib_write_bw -R -c UC', perftest_uc
    yield 'ib_write_bw -R -q 8', lambda: perftest('ib_write_bw', '-q', '8', '-n', '100')
    yield 'ib_send_bw -R -T 32', lambda: perftest('ib_send_bw', '-T', '32', '-n', '100')
    for test in ('rc_bw', 'rc_bi_bw', 'rc_lat', 'rc_rdma_read_bw', 'rc_rdma_read_lat', 'rc_rdma_write_bw',
                 'rc_rdma_write_lat', 'rc_rdma_write_poll_lat', 'rc_fetch_add_mr', 'rc_compare_swap_mr',
                 'ver_rc_fetch_add', 'ver_rc_compare_swap', 'uc_bw', 'uc_lat', 'uc_rdma_write_bw', 'ud_bw', 'ud_lat'):
        yield f'qperf {test}', lambda t=test: qperf(t)
    for args in ('-S 64', '-S 4096', '-S 65536 -T b', '-S 65536 -T a', '-S 65536 -T n', '-S 65536 -T f', '-S 1000000 -T r'):
        yield f'rstream {args}', lambda a=args: rsocket('rstream', '-I', '10', '-C', '10', *a.split())
    for args in ('-S 64', '-S 65536'):
        yield f'riostream {args}', lambda a=args: rsocket('riostream', '-I', '10', '-C', '10', *a.split())
    for args in ('', '-T e'):
        yield f'udpong {args}'.rstrip(), lambda a=args: udpong('-S', '64', '-C', '100', *a.split())
    yield 'rcopy', rcopy
    if server_host is client_host and ':' not in address:
        for name in ('rsocket_api', 'rsocket_datagrams'):
            yield name, lambda n=name: own_rsocket_test(n)
    if server_host is client_host and address != '127.0.0.1':
        yield 'pyverbs: test_rdmacm', pyverbs
    for verb in ('write', 'read', 'send'):
        yield f'fio, {verb}', lambda v=verb: fio(v)


if __name__ == '__main__':
    isolate()
    way = sys.argv.pop(1)
    if way == 'loopback':
        server_host = client_host = Host('loopback')
        address = server_address = client_address = '127.0.0.1'
    else:
        host_a, host_b = veth_pair()
        server_host, client_host = (host_a, host_a) if way == 'one' else (host_a, host_b)
        where = (lambda host: host.ipv6) if way == 'veth6' else (lambda host: host.address)
        address = server_address = where(server_host)
        client_address = where(client_host)
    sys.exit(tap(list(cases())))
