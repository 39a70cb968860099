# SPDX-License-Identifier: BSD-2-Clause
"""The ends of rdma_cm connections. 5,000 connections of one pair of processes leave nothing behind: a build with a sanitizer
looks for leaks, a build without one looks at the processes' memory. Further: peers that are killed, a UDP port that is in
use, and requests that no kernel would send.
"""
import re
import sys

import cm_raw
from cm_server import serve
from harness import ROCI, SANITIZER, Failure, Host, check, isolate, need, next_port, program, run_pair, tap, veth_pair, wait_until
from mover import environment

COUNT, OPEN = 5000, 500
MOST_KIB = 4 * (COUNT - OPEN)  # for connections in TIMEWAIT; a leaked queue pair takes twice as much
LEAKED = 'LeakSanitizer: detected memory leaks'
DISCONNECTED = 'RDMA_CM_EVENT_DISCONNECTED'
RETRIES_EXCEEDED = 'transport retry counter exceeded'
UDADDY_PORT = 7174
INVALID_SERVICE, INVALID_TRANSPORT, SIDR_REJECT = 8, 9, 2  # IBTA 12.6.7.2, 12.11.1.2
VALGRIND = ['valgrind', '-q', '--error-exitcode=9']
STEAL = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('0.0.0.0', 4791))
print('taken', flush=True)
time.sleep(600)
"""


def start(server_host, client_host, address, *args):
    where = ['-p', str(next_port()), *args]
    server = serve(server_host, program('connect_many'), '-b', address, *where)
    return server, client_host.start(program('connect_many'), '-s', address, *where)


def connect(server_host, client_host, address):
    texts = run_pair(*start(server_host, client_host, address, '-n', str(COUNT), '-o', str(OPEN)), 120)
    for text in texts:
        found = re.search(rf'{COUNT} connections, .* (\d+) KiB resident, (\d+) after the first batch', text)
        check(found, text)
        growth = int(found[1]) - int(found[2])
        check(SANITIZER or growth < MOST_KIB, f'grew by {growth} KiB: {text}')
    return texts[1]


def leak_is_found():
    """Proves that the sanitizer would find a leak in the cases above."""
    server, client = start(loopback, loopback, '127.0.0.1', '-n', '10', '-o', '10', '-l')
    try:
        for process in client, server:
            check(process.wait(60) not in (0, None), 'nobody found the leak:\n' + process.report())
            check(LEAKED in process.text(), process.report())
    finally:
        client.end()
        server.end()


def under_valgrind():
    """valgrind finds uninitialised bytes that the libraries hand to the kernel, and so to other hosts."""
    need('valgrind')
    where = ['-p', str(next_port()), '-n', '40', '-o', '20']
    server = serve(loopback, *VALGRIND, program('connect_many'), '-b', '127.0.0.1', *where)
    run_pair(server, loopback.start(*VALGRIND, program('connect_many'), '-s', '127.0.0.1', *where))


class Doomed:
    """A connection. The test kills one side."""

    def __init__(self, server_host, client_host, victim, how):
        self.where, self.how = (server_host, client_host), how
        self.argv = [program('cm_survivor'), *(['-i'] if how == 'idle' else []), '-p', str(next_port())]
        self.server = serve(server_host, *self.argv, '-b', server_host.address)
        self.client = client_host.start(*self.argv, '-s', server_host.address)
        self.victim, self.survivor = (self.server, self.client) if victim == 'server' else (self.client, self.server)

    def runs(self):
        return all('running' in side.text() or not side.running() for side in (self.server, self.client))

    def end(self):
        self.server.end()
        self.client.end()


def killed(server_host, client_host):
    """Kills one side of three connections at once, to wait for their timeouts together. Then the ports can be used again."""
    doomed = []
    try:
        for victim, how in (('server', 'idle'), ('client', 'idle'), ('server', 'busy')):
            doomed.append(Doomed(server_host, client_host, victim, how))
        for pair in doomed:
            wait_until('the connection', pair.runs)
            check(pair.server.running() and pair.client.running(), pair.server.report() + pair.client.report())
        for pair in doomed:
            pair.victim.end()
        lines = []
        for pair in doomed:
            status = pair.survivor.wait(60)
            check(status == 0, pair.survivor.report())
            allowed = [DISCONNECTED, RETRIES_EXCEEDED] if pair.how == 'busy' else [DISCONNECTED]
            lines += [line for line in pair.survivor.text().splitlines() if line in allowed]
        check(len(lines) == len(doomed), '\n'.join(pair.survivor.report() for pair in doomed))
        where = ['-p', doomed[0].argv[-1], '-n', '10', '-o', '10']
        server = serve(server_host, program('connect_many'), '-b', server_host.address, *where)
        run_pair(server, client_host.start(program('connect_many'), '-s', server_host.address, *where))
    finally:
        for pair in doomed:
            pair.end()
    return '\n'.join(lines)


TAKEN = 'UDP port 4791 of {} is taken, by another program or the kernel\'s rdma_rxe module: other hosts cannot reach this ' \
    'process there, your processes on this host can. `ss -ulnp sport = :4791` shows who'


def port_taken():
    """A program that does not share the port has it. Peers on this host work; connections to other hosts fail at once. Each
    program prints why, and what to do."""
    thief = host_a.start('/usr/bin/python3', '-c', STEAL, plain=True)
    try:
        wait_until('the port to be taken', lambda: 'taken' in thief.text() or not thief.running())
        check(thief.running(), thief.report())
        at = ['-a', host_a.address, '-p', str(next_port()), '-C', '3']
        server = host_a.start('rping', '-s', *at)
        wait_until('the server to listen', lambda: 'is taken' in server.text() or not server.running())
        for text in run_pair(server, host_a.start('rping', '-c', '-V', *at)):
            check(TAKEN.format(host_a.address) in text, text)
        check(f'"python3",pid={thief.pid}' in host_a.run('ss', '-Hulnp', 'sport = :4791'), 'ss does not show who')
        at = ['-a', host_b.address, '-p', str(next_port()), '-C', '3']
        server = serve(host_b, 'rping', '-s', *at)
        client = host_a.start('rping', '-c', *at)
        try:
            check(client.wait(20) not in (0, None), client.report())
            check(TAKEN.format(host_a.address) in client.text() and 'RDMA_CM_EVENT_ADDR_ERROR, error -98' in client.text(),
                  client.report())
        finally:
            server.end()
    finally:
        thief.end()


def wrong_kind(server_argv, client_argv, request, expected):
    """Asks a datagram service for a connection, or the other way round. The server sees no event, and continues to work."""
    server = serve(host_b, *server_argv)
    try:
        with cm_raw.RawCm(host_a.address) as raw:
            answer = raw.ask(host_b.address, request)
        check(answer == expected and server.running(), f'the answer is {answer}\n{server.report()}')
    except Failure:
        server.end()
        raise
    run_pair(server, host_a.start(*client_argv))


def connection_of_a_datagram_service():
    wrong_kind(['udaddy', '-b', host_b.address], ['udaddy', '-s', host_b.address],
               cm_raw.req(7, cm_raw.UDP, UDADDY_PORT, host_a.address, host_b.address),
               (cm_raw.REJ, INVALID_TRANSPORT))


def datagrams_of_a_connected_service():
    at = ['-a', host_b.address, '-p', str(next_port())]
    wrong_kind(['rping', '-s', *at], ['rping', '-c', '-C', '3', *at],
               cm_raw.sidr_req(7, cm_raw.TCP, int(at[-1]), host_a.address, host_b.address),
               (cm_raw.SIDR_REP, SIDR_REJECT))


def rejected_by(listener, address, line):
    port = str(next_port())
    server = serve(host_b, 'rping', '-s', '-a', listener, '-p', port)
    try:
        for _ in range(2):
            client = host_a.start('rping', '-c', '-a', address, '-p', port, '-C', '1')
            check(client.wait(20) not in (0, None) and 'RDMA_CM_EVENT_REJECTED, error 8' in client.text(), client.report())
        check(server.text().count(f'a connection request for port {port} {line}. Listen at :: to get both') == 1, server.report())
    finally:
        server.end()


def listener_of_the_other_family():
    """A request by the other address family is rejected, as nobody listens there. The server prints why, once."""
    everywhere = serve(host_b, 'rping', '-s', '-a', '::', '-p', str(next_port()))  # so that requests arrive at each address
    try:
        rejected_by('0.0.0.0', host_b.ipv6, 'came by IPv6 and is rejected: this process listens there at IPv4 addresses only')
        rejected_by(host_b.ipv6, host_b.address, 'came by IPv4 and is rejected: this process listens there at IPv6 addresses only')
    finally:
        everywhere.end()


def listener_of_another_address():
    """A server listens on 127.0.0.1 only. A request from another host that names 127.0.0.1 must not reach it."""
    port = next_port()
    local = serve(host_b, 'rping', '-s', '-a', '127.0.0.1', '-p', str(port))
    public = serve(host_b, 'rping', '-s', '-a', host_b.address, '-p', str(next_port()))
    try:
        with cm_raw.RawCm(host_a.address) as raw:
            header = cm_raw.ip_header(host_a.address, '127.0.0.1')
            answer = raw.ask(host_b.address, cm_raw.req(7, cm_raw.TCP, port, host_a.address, host_b.address,
                                                                  header))
        check(answer == (cm_raw.REJ, INVALID_SERVICE), f'the answer is {answer}\n{local.report()}')
    finally:
        local.end()
        public.end()


# ---- ICMP says that nobody is there ----

REFUSED, NO_ROUTE = -111, -113
MOST_MADS = 6  # a second request confirms the first; all fifteen would take a minute


def refused(program, address, error):
    """Nothing has UDP port 4791 at the address, or no host has the address. The second refused request ends the connection,
    not the last one."""
    port = ['-p', str(next_port())] if program == 'rping' else []
    client = {'rping': ['rping', '-c', '-a', address, '-C', '1'], 'udaddy': ['udaddy', '-s', address]}[program]
    process = host_b.start(*client, *port)
    try:
        check(process.wait(60) not in (0, None), process.report())
    finally:
        process.end()
    check(re.search(rf'RDMA_CM_EVENT_UNREACHABLE, error:? {error}\b', process.text()), process.report())
    mads = re.search(r'mads_sent +(\d+)', process.text())
    check(mads and 2 <= int(mads[1]) <= MOST_MADS, process.report())


def roci_send(address, text):
    process = host_b.start('sh', '-c', f'"$0" send --open "$1" {address}', ROCI, __file__, plain=True,
                           env=environment())
    try:
        check(process.wait(60) not in (0, None), process.report())
    finally:
        process.end()
    check(text in process.text(), process.report())


def icmp_cases():
    none = host_a.address.rsplit('.', 1)[0] + '.77'
    for ip, address in ('IPv4', host_a.address), ('IPv6', host_a.ipv6):
        for name in 'rping', 'udaddy':
            yield f'{ip}: {name}, nothing has UDP port 4791 there', lambda n=name, a=address: refused(n, a, REFUSED)
    yield 'rping, no host has the address', lambda: refused('rping', none, NO_ROUTE)
    yield 'roci send, nothing has UDP port 4791 there', lambda: roci_send(host_a.address, 'start `roci recv` there')
    yield 'roci send, no host has the address', lambda: roci_send(none, 'No route to host; is it on')


def cases():
    for address in ('127.0.0.1', '::1'):
        yield f'what librdmacm answers, {address}', lambda a=address: loopback.call(program('cm_api'), a)
    yield f'{COUNT} connections, one host', lambda: connect(loopback, loopback, '127.0.0.1')
    yield f'{COUNT} connections, two hosts', lambda: connect(host_a, host_b, host_a.address)
    yield f'{COUNT} connections, two hosts, IPv6', lambda: connect(host_a, host_b, host_a.ipv6)
    if SANITIZER == 'address':
        yield 'a leak is found', leak_is_found
    if not SANITIZER:
        yield 'under valgrind', under_valgrind
    yield 'kill -9 of a peer, one host', lambda: killed(host_a, host_a)
    yield 'kill -9 of a peer, two hosts', lambda: killed(host_b, host_a)
    yield 'the UDP port is taken', port_taken
    yield 'a connection asked of a datagram service', connection_of_a_datagram_service
    yield 'datagrams asked of a connected service', datagrams_of_a_connected_service
    yield 'a listener asked at another address', listener_of_another_address
    yield 'a listener of the other address family', listener_of_the_other_family
    yield from icmp_cases()


if __name__ == '__main__':
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    sys.exit(tap(list(cases())))
