"""Connections of rdma_cm by the thousand: opened, used and closed in one pair of processes, with nothing left of them. A
sanitizer's build looks for leaks; another for the memory that both processes have at the end.
"""
import re
import sys

from cm_server import serve
from harness import SANITIZER, Host, check, isolate, next_port, program, run_pair, tap, veth_pair

COUNT, OPEN = 5000, 500
MOST_KIB = 4 * (COUNT - OPEN)  # what may still be in TIMEWAIT; a queue pair that is not freed is twice as much
LEAKED = 'LeakSanitizer: detected memory leaks'


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
    """Otherwise the cases before prove nothing."""
    server, client = start(loopback, loopback, '127.0.0.1', '-n', '10', '-o', '10', '-l')
    try:
        for process in client, server:
            check(process.wait(60) not in (0, None), 'nobody found the leak:\n' + process.report())
            check(LEAKED in process.text(), process.report())
    finally:
        client.end()
        server.end()


def cases():
    yield 'one host', lambda: connect(loopback, loopback, '127.0.0.1')
    yield 'two hosts', lambda: connect(host_a, host_b, host_a.address)
    yield 'two hosts, IPv6', lambda: connect(host_a, host_b, host_a.ipv6)
    if SANITIZER == 'address':
        yield 'a leak is found', leak_is_found


if __name__ == '__main__':
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    sys.exit(tap([(f'{COUNT} connections, {name}' if 'host' in name else name, case) for name, case in cases()]))
