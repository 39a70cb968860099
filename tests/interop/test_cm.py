"""rdma_cm between roci0 and the kernel's Soft-RoCE, with either of them listening, over IPv4 and IPv6."""
import os
import sys
import tempfile

import world
from harness import Skip, check, next_port, run_pair, tap, wait_until

def of(host, ipv6):
    return host.ipv6 if ipv6 else host.address


def connect(server_host, client_host, server_argv, client_argv, seconds=40):
    server = server_host.serve(*server_argv)
    return run_pair(server, client_host.start(*client_argv), seconds)


def rping(server, client, ipv6, *args):
    both = ['-a', of(server, ipv6), '-p', str(next_port()), '-V', *args]
    connect(server, client, ['rping', '-s', *both], ['rping', '-c', *both])


def complete(texts):
    for text in texts:
        check('test complete' in text and 'return status 0' in text, '\n'.join(texts))


def ucmatose(server, client, ipv6, *args):
    port = ['-p', str(next_port())]
    complete(connect(server, client, ['ucmatose', '-b', of(server, ipv6), *port, *args],
                     ['ucmatose', '-s', of(server, ipv6), *port, *args]))


def udaddy(server, client, ipv6, *args):
    """Its port is fixed."""
    complete(connect(server, client, ['udaddy', '-b', of(server, ipv6), *args],
                     ['udaddy', '-s', of(server, ipv6), *args]))


def rdma_client(server, client, ipv6):
    at = ['-s', of(server, ipv6), '-p', str(next_port())]
    texts = connect(server, client, ['rdma_server', *at], ['rdma_client', *at])
    check('rdma_client: end 0' in texts[1] and 'rdma_server: end 0' in texts[0], '\n'.join(texts))


def rejected(server, client, ipv6):
    """Somebody listens, but on another port: reason 8, no such service."""
    other = server.serve('rping', '-s', '-a', of(server, ipv6), '-p', str(next_port()))
    try:
        process = client.start('rping', '-c', '-a', of(server, ipv6), '-p', str(next_port()), '-C', '1')
        check(process.wait(20) not in (0, None), process.report())
        check('RDMA_CM_EVENT_REJECTED, error 8' in process.text(), process.report())
    finally:
        other.end()


def consumer_reject(server, client, ipv6):
    """The listener says no, then yes; the client learns it, with the reason and the private data."""
    port = ['-p', str(next_port())]
    connect(server, client, [world.program('reject'), '-b', of(server, ipv6), *port],
            [world.program('reject'), '-s', of(server, ipv6), *port])


def killed(server, client, ipv6, victim):
    """One of them ends with kill -9; the other is told, and the next pair connects to the same port."""
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
            # It waits for an event of its CQ then, which comes with the flushed receives; siw at times has none.
            check(living.plain or survivor.wait(30) is not None, survivor.report())
        # rping asks for 7 retries, which Soft-RoCE takes for infinite: it goes on asking the dead until it is ended.
    finally:
        listener.end()
        caller.end()
    connect(server, client, ['rping', '-s', *both], ['rping', '-c', *both, '-V', '-C', '3'])


def server_killed(server, client, ipv6):
    killed(server, client, ipv6, server)


def client_killed(server, client, ipv6):
    killed(server, client, ipv6, client)


def perftest(server, client, ipv6, name, *args):
    if ipv6:
        raise Skip('with -R it resolves IPv4 addresses only')
    argv = [name, '-R', '-F', '-p', str(next_port()), *args]
    connect(server, client, [*argv, '-d', server.device], [*argv, '-d', client.device, of(server, ipv6)])


def rsocket(server, client, ipv6, name, *args):
    port = ['-p', str(next_port())]
    connect(server, client, [name, '-b', of(server, ipv6), *port, *args], [name, '-s', of(server, ipv6), *port, *args])


def rcopy(server, client, ipv6):
    if ipv6:
        raise Skip('the address is what stands before the first colon')
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
    # name, function, arguments; + leaves it out of the part, - out of its IPv6
    ('rping -C 10', rping, ['-C', '10']),
    ('+rping -C 10 -S 60000', rping, ['-C', '10', '-S', '60000']),
    ('-ucmatose', ucmatose, []),
    ('+ucmatose -c 10', ucmatose, ['-c', '10']),
    ('-ucmatose -S 50000', ucmatose, ['-S', '50000']),
    ('udaddy', udaddy, []),
    ('+udaddy -c 10', udaddy, ['-c', '10']),
    ('rdma_client', rdma_client, []),
    ('-nobody listens: rejected', rejected, []),
    ('-the listener rejects, then accepts', consumer_reject, []),
    ('-the server is killed', server_killed, []),
    ('-the client is killed', client_killed, []),
    ('-ib_write_bw -R', perftest, ['ib_write_bw', '-n', '20']),
    ('+ib_send_lat -R', perftest, ['ib_send_lat', '-n', '20']),
    ('-rstream', rsocket, ['rstream', '-I', '10', '-C', '10', '-S', '4096']),
    ('+riostream', rsocket, ['riostream', '-I', '10', '-C', '10', '-S', '65536']),
    ('-rcopy', rcopy, []),
]


def cases(rxe, roci, part):
    for server, client in ((rxe, roci), (roci, rxe)):
        for ipv6 in (False, True):
            for name, function, args in CASES:
                if part and name[0] in ('+-' if ipv6 else '+'):
                    continue
                yield (f'{client.kind} to {server.kind}, {"IPv6" if ipv6 else "IPv4"}: {name.lstrip("+-")}',
                       lambda f=function, s=server, c=client, v=ipv6, a=args: f(s, c, v, *a))


if __name__ == '__main__':
    part = world.option('part')
    sys.exit(tap(list(cases(*world.rxe_and_roci(), part))))
