"""rdma_cm between roci0 and the kernel's Soft-RoCE, with either of them listening, over IPv4 and IPv6."""
import os
import re
import sys
import tempfile
import time

import world
from harness import Skip, check, next_port, run_pair, tap

# The listener is not there yet, or there is none: what the programs say of that.
TOO_EARLY = r'REJECTED.*error.*8|UNREACHABLE.*error|Unexpected CM event bl blka 8|REJECTED.*, error 8'


def of(host, ipv6):
    return host.ipv6 if ipv6 else host.address


def connect(server_host, client_host, server_argv, client_argv, seconds=40):
    """No kernel tells when a rdma_cm program listens, so a client that came too early is started again."""
    server = server_host.start(*server_argv)
    try:
        time.sleep(0.7)
        for _ in range(5):
            client = client_host.start(*client_argv)
            end = time.monotonic() + 2
            while client.running() and time.monotonic() < end:
                time.sleep(0.02)
            if client.running() or client.popen.poll() == 0 or not server.running() or \
                    not re.search(TOO_EARLY, client.text()):
                break
        return run_pair(server, client, seconds)
    finally:
        server.end()


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
    other = server.start('rping', '-s', '-a', of(server, ipv6), '-p', str(next_port()))
    try:
        time.sleep(0.7)
        process = client.start('rping', '-c', '-a', of(server, ipv6), '-p', str(next_port()), '-C', '1')
        check(process.wait(20) not in (0, None), process.report())
        check('RDMA_CM_EVENT_REJECTED, error 8' in process.text(), process.report())
    finally:
        other.end()


def server_killed(server, client, ipv6):
    """The listener and its connection end with kill -9; the client comes to an end, and the next pair connects."""
    both = ['-a', of(server, ipv6), '-p', str(next_port())]
    one = server.start('rping', '-s', *both)
    time.sleep(0.7)
    two = client.start('rping', '-c', *both, '-C', '1000000')
    try:
        time.sleep(1.5)
        check(one.running() and two.running(), one.report() + two.report())
        one.end()
        check(two.wait(30) not in (0, None), two.report())
    finally:
        one.end()
        two.end()
    rping(server, client, ipv6, '-C', '3')


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
        listener = server.start('rcopy', *port)
        try:
            time.sleep(0.7)
            client.call('rcopy', source, f'{of(server, ipv6)}:{target}', *port)
        finally:
            listener.end()
        with open(source, 'rb') as one, open(target, 'rb') as two:
            check(one.read() == two.read(), 'the copy differs')


CASES = [
    # name, function, arguments; + leaves it out of the part
    ('rping -C 10', rping, ['-C', '10']),
    ('+rping -C 10 -S 60000', rping, ['-C', '10', '-S', '60000']),
    ('ucmatose', ucmatose, []),
    ('+ucmatose -c 10', ucmatose, ['-c', '10']),
    ('ucmatose -S 50000', ucmatose, ['-S', '50000']),
    ('udaddy', udaddy, []),
    ('+udaddy -c 10', udaddy, ['-c', '10']),
    ('rdma_client', rdma_client, []),
    ('nobody listens: rejected', rejected, []),
    ('the server is killed', server_killed, []),
    ('ib_write_bw -R', perftest, ['ib_write_bw', '-n', '20']),
    ('+ib_send_lat -R', perftest, ['ib_send_lat', '-n', '20']),
    ('rstream', rsocket, ['rstream', '-I', '10', '-C', '10', '-S', '4096']),
    ('+riostream', rsocket, ['riostream', '-I', '10', '-C', '10', '-S', '65536']),
    ('rcopy', rcopy, []),
]


def cases(part):
    for server, client in ((rxe, roci), (roci, rxe)):
        for ipv6 in (False, True):
            for name, function, args in CASES:
                if part and name.startswith('+'):
                    continue
                yield (f'{client.kind} to {server.kind}, {"IPv6" if ipv6 else "IPv4"}: {name.lstrip("+")}',
                       lambda f=function, s=server, c=client, v=ipv6, a=args: f(s, c, v, *a))


if __name__ == '__main__':
    part = 'part' in sys.argv
    sys.argv = [a for a in sys.argv if a != 'part']
    rxe, roci = world.rxe_and_roci()
    sys.exit(tap(list(cases(part))))
