# SPDX-License-Identifier: BSD-2-Clause
"""rdma_cm between roci0 and the kernel's Soft-RoCE, with either of them listening, over IPv4 and IPv6."""
import os
import platform
import sys
import tempfile

import world
from harness import check, next_port, program, run_pair, tap, wait_until

OLD_KERNEL = platform.release().startswith('6.1.')
NOTICES = 'RDMA_CM_EVENT_DISCONNECTED', 'transport retry counter exceeded'


def of(host, ipv6):
    return host.ipv6 if ipv6 else host.address


def connect(server_host, client_host, server_argv, client_argv, seconds=40):
    server = server_host.serve(*server_argv)
    return run_pair(server, client_host.start(*client_argv), seconds)


def rping(server, client, ipv6, *args):
    both = ['-a', of(server, ipv6), '-p', str(next_port()), '-V', *args]
    connect(server, client, ['rping', '-s', *both], ['rping', '-c', *both])


def persistent(server, client, ipv6):
    """Five clients of one server. Each starts when the one before is working, because rping loses a request that comes
    before it has fetched the last one."""
    both = ['-a', of(server, ipv6), '-p', str(next_port()), '-V']
    listener = server.serve('rping', '-s', '-P', *both)
    clients = []
    try:
        for _ in range(5):
            one = client.start('rping', '-c', *both, '-v', '-C', '60')
            clients.append(one)
            wait_until('data', lambda: 'ping data' in one.text() or not one.running())
        for one in clients:
            check(one.wait(20) == 0, f'{listener.report()}\n{one.report()}')
        check(listener.running(), listener.report())
    finally:
        for process in listener, *clients:
            process.end()


def complete(texts):
    for text in texts:
        check('test complete' in text and 'return status 0' in text, '\n'.join(texts))


def ucmatose(server, client, ipv6, *args):
    port = ['-p', str(next_port())]
    complete(connect(server, client, ['ucmatose', '-b', of(server, ipv6), *port, *args],
                     ['ucmatose', '-s', of(server, ipv6), *port, *args]))


def udaddy(server, client, ipv6, *args):
    """udaddy's port is fixed."""
    complete(connect(server, client, ['udaddy', '-b', of(server, ipv6), *args],
                     ['udaddy', '-s', of(server, ipv6), *args]))


def rdma_client(server, client, ipv6):
    at = ['-s', of(server, ipv6), '-p', str(next_port())]
    texts = connect(server, client, ['rdma_server', *at], ['rdma_client', *at])
    check('rdma_client: end 0' in texts[1] and 'rdma_server: end 0' in texts[0], '\n'.join(texts))


def rejected(server, client, ipv6):
    """There is a listener, but on another port: reason 8, no such service."""
    other = server.serve('rping', '-s', '-a', of(server, ipv6), '-p', str(next_port()))
    try:
        process = client.start('rping', '-c', '-a', of(server, ipv6), '-p', str(next_port()), '-C', '1')
        check(process.wait(20) not in (0, None), process.report())
        check('RDMA_CM_EVENT_REJECTED, error 8' in process.text(), process.report())
    finally:
        other.end()


def no_datagram_service(server, client, ipv6):
    """There is a listener, but for connections: status 1 of a SIDR_REP, no such service."""
    other = server.serve('rping', '-s', '-a', of(server, ipv6), '-p', str(next_port()))
    try:
        process = client.start('udaddy', '-s', of(server, ipv6))
        check(process.wait(20) not in (0, None), process.report())
        check('RDMA_CM_EVENT_UNREACHABLE, error: 1\n' in process.text(), process.report())
    finally:
        other.end()


def consumer_reject(server, client, ipv6, *args):
    """The listener rejects, then accepts. The client sees both, with the reason (28 by default) and the private data."""
    port = ['-p', str(next_port())]
    connect(server, client, [world.program('reject'), '-b', of(server, ipv6), *port],
            [world.program('reject'), '-s', of(server, ipv6), *port, *args])


def killed(server, client, ipv6, victim):
    """kill -9 of one side: the other side is disconnected, and the next pair connects to the same port."""
    both = ['-a', of(server, ipv6), '-p', str(next_port())]
    listener = server.serve('rping', '-s', *both)
    caller = client.start('rping', '-c', *both, '-v', '-C', '1000000')
    dead, survivor, living = (listener, caller, client) if victim is server else (caller, listener, server)
    try:
        wait_until('data', lambda: 'ping data' in caller.text() or not caller.running())
        check(caller.running() and listener.running(), f'{listener.report()}\n{caller.report()}')
        dead.end()
        if victim.plain:  # its kernel disconnects
            wait_until('the disconnect', lambda: 'DISCONNECT EVENT' in survivor.text() or not survivor.running())
            check('DISCONNECT EVENT' in survivor.text(), survivor.report())
            # rping ends after a CQ event, which comes with the flushed receives. siw sometimes has none.
            check(living.plain or survivor.wait(30) is not None, survivor.report())
        # rping sets 7 retries, which Soft-RoCE takes for infinite: it resends to the dead peer until it is ended.
        # killed_while_sent_to() has fewer retries.
    finally:
        listener.end()
        caller.end()
    connect(server, client, ['rping', '-s', *both], ['rping', '-c', *both, '-V', '-C', '3'])


def server_killed(server, client, ipv6):
    killed(server, client, ipv6, server)


def client_killed(server, client, ipv6):
    killed(server, client, ipv6, client)


class Doomed:
    """A connection over which one side sends without end. The other side is killed."""

    def __init__(self, server, client, victim):
        argv = [program('cm_survivor'), *(['-r'] if victim is client else []), '-p', str(next_port())]
        self.name = f'{client.kind} to {server.kind}, {victim.kind} is killed'
        self.server = server.serve(*argv, '-b', server.address)
        self.client = client.start(*argv, '-s', server.address)
        self.victim, self.survivor = (self.server, self.client) if victim is server else (self.client, self.server)

    def runs(self):
        return all('running' in side.text() or not side.running() for side in (self.server, self.client))

    def report(self):
        return f'{self.name}:\n{self.server.report()}\n{self.client.report()}'

    def notice(self):
        """How the survivor noticed; it has destroyed everything by then."""
        check(self.survivor.wait(40) == 0, self.report())
        return f'{self.name}: ' + ', '.join(line for line in self.survivor.text().splitlines() if line in NOTICES)


def killed_while_sent_to(rxe, roci):
    """A side that sends to a dead peer notices after its retries at the latest. All pairs at once, because they wait."""
    doomed = []
    try:
        for server, client in ((rxe, roci), (roci, rxe)):
            for victim in rxe, roci:
                doomed.append(Doomed(server, client, victim))
        for pair in doomed:
            wait_until('the connection', pair.runs)
            check(pair.server.running() and pair.client.running(), pair.report())
        for pair in doomed:
            pair.victim.end()
        notices = [pair.notice() for pair in doomed]
        check(all(text.endswith(NOTICES) for text in notices), '\n'.join(notices))
        return '\n'.join(notices)
    finally:
        for pair in doomed:
            pair.server.end()
            pair.client.end()


def perftest(server, client, ipv6, name, *args):
    argv = [name, '-R', '-F', '-p', str(next_port()), *args]
    connect(server, client, [*argv, '-d', server.device], [*argv, '-d', client.device, of(server, ipv6)])


def rsocket(server, client, ipv6, name, *args):
    port = ['-p', str(next_port())]
    connect(server, client, [name, '-b', of(server, ipv6), *port, *args], [name, '-s', of(server, ipv6), *port, *args])


def rcopy(server, client, ipv6):
    port = ['-p', str(next_port())]
    with tempfile.TemporaryDirectory() as directory:
        source, target = f'{directory}/source', f'{directory}/target'
        with open(source, 'wb') as f:
            f.write(os.urandom(1000000))
        listener = server.serve('rcopy', *port)
        try:
            client.call('rcopy', source, f'{of(server, ipv6)}:{target}', *port)
        finally:
            listener.end()
        with open(source, 'rb') as one, open(target, 'rb') as two:
            check(one.read() == two.read(), 'the copy differs')


CASES = [
    # name, function, arguments; +: not in the part; -: not in the IPv6 part on 6.1
    ('rping -C 10', rping, ['-C', '10']),
    ('+rping -C 10 -S 60000', rping, ['-C', '10', '-S', '60000']),
    ('-ucmatose', ucmatose, []),
    ('+ucmatose -c 10', ucmatose, ['-c', '10']),
    ('-ucmatose -S 50000', ucmatose, ['-S', '50000']),
    ('+5 clients of one rping', persistent, []),
    ('udaddy', udaddy, []),
    ('+udaddy -c 10', udaddy, ['-c', '10']),
    ('rdma_client', rdma_client, []),
    ('-nobody listens: rejected', rejected, []),
    ('-no datagram service: refused', no_datagram_service, []),
    ('-the listener rejects, then accepts', consumer_reject, []),
    ('-the server is killed', server_killed, []),
    ('-the client is killed', client_killed, []),
    ('-ib_write_bw -R', perftest, ['ib_write_bw', '-n', '20']),
    ('+ib_send_lat -R', perftest, ['ib_send_lat', '-n', '20']),
    ('-rstream', rsocket, ['rstream', '-I', '10', '-C', '10', '-S', '4096']),
    ('+riostream', rsocket, ['riostream', '-I', '10', '-C', '10', '-S', '65536']),
    ('-rcopy', rcopy, []),
]

# With -R perftest resolves names to IPv4 addresses only. rcopy takes the text before the first colon as the address. And
# persistent() needs to run only once.
IPV4_ONLY = perftest, rcopy, persistent


def cases(rxe, roci, part):
    for server, client in ((rxe, roci), (roci, rxe)):
        for ipv6 in (False, True):
            for name, function, args in CASES:
                if part and name[0] in ('+-' if ipv6 and OLD_KERNEL else '+') or ipv6 and function in IPV4_ONLY:
                    continue
                yield (f'{client.kind} to {server.kind}, {"IPv6" if ipv6 else "IPv4"}: {name.lstrip("+-")}',
                       lambda f=function, s=server, c=client, v=ipv6, a=args: f(s, c, v, *a))
    if not (part and OLD_KERNEL):
        yield 'rxe and roci: killed while the other sends', lambda: killed_while_sent_to(rxe, roci)


if __name__ == '__main__':
    part = world.option('part')
    sys.exit(tap(list(cases(*world.rxe_and_roci(), part))))
