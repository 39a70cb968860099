"""What iWARP allows, over the kernel's siw on both sides with the system's libraries: the examples, and `roci send` and
`roci recv`, which need neither immediate data nor atomics."""
import sys

import test_cm
import test_tools
import world
from harness import check, next_port, tap

EXAMPLES = [
    ('rping -C 10', test_cm.rping, ['-C', '10']),
    ('rping -C 10 -S 60000', test_cm.rping, ['-C', '10', '-S', '60000']),
    ('ucmatose -c 10', test_cm.ucmatose, ['-c', '10']),
    ('rdma_client', test_cm.rdma_client, []),
    ('the server is killed', test_cm.server_killed, []),
    ('the client is killed', test_cm.client_killed, []),
    ('ib_write_bw -R', test_cm.perftest, ['ib_write_bw', '-n', '20']),
    ('ib_read_bw -R', test_cm.perftest, ['ib_read_bw', '-n', '20']),
    ('ib_send_bw -R', test_cm.perftest, ['ib_send_bw', '-n', '20']),
    ('ib_write_lat -R', test_cm.perftest, ['ib_write_lat', '-n', '20']),
    ('ib_send_lat -R', test_cm.perftest, ['ib_send_lat', '-n', '20']),
    ('rstream', test_cm.rsocket, ['rstream', '-I', '10', '-C', '10', '-S', '4096']),
    ('rcopy', test_cm.rcopy, []),
]


def atomics(server, client):
    """iWARP has none, nor immediate data: a program that asks for them is told so at its first request. `roci send` and
    `roci recv` do without both, here as everywhere."""
    argv = ['ib_atomic_bw', '-R', '-F', '-p', str(next_port())]
    listener = server.serve(*argv, '-d', server.device)
    process = client.start(*argv, '-d', client.device, server.address)
    try:
        check(process.wait(30) not in (0, None) and "Couldn't post send" in process.text(), process.report())
    finally:
        listener.end()


def main():
    server, client = world.kernel_pair('siw')
    cases = [(f'siw: {name}', lambda f=function, a=args: f(server, client, False, *a)) for name, function, args in EXAMPLES]
    cases.append(('siw: atomics are refused', lambda: atomics(server, client)))
    return tap([*cases, *test_tools.cases(test_tools.Bench(), server, client)])


if __name__ == '__main__':
    sys.exit(main())
