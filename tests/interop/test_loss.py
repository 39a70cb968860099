"""A wire that loses packets in both directions, by netem, and a peer that is killed in the middle of a stream. An argument
`heavy` leaves out the loss of 1%, which is in every run."""
import json
import os
import sys

import world
from harness import check, next_port, program, tap, wait_until

# Programs whose two sides meet over TCP before they end. A ping-pong does not: it ends with its own last completion, and when
# the acknowledgement that it sent last is lost, nobody is left to repeat it. The peer's last request fails then, on any
# adapter, and on Soft-RoCE, which takes a retry count of 7 for infinite, it never even fails.
PROGRAMS = [
    (program('all_ops'), '-x -a -f -r 4', '-g'),  # every byte and every completion of every opcode is verified
    ('ib_write_bw', '-F -s 65536 -n 20', '-x'),
    ('ib_read_bw', '-F -o 8 -s 65536 -n 20', '-x'),
    ('ib_send_bw', '-F -s 65536 -n 20', '-x'),
    ('ib_send_bw', '-F -e -s 50000 -n 20', '-x'),
    ('ib_atomic_bw', '-F -o 8 -n 100', '-x'),
]


def netem(percent, *hosts):
    for host in hosts:
        host.run('tc', 'qdisc', 'replace', 'dev', host.link, 'root', 'netem', 'loss', f'{percent}%')


lost = {}  # by the end where they were to leave


def end_netem(host):
    qdisc, = (q for q in json.loads(host.run('tc', '-s', '-j', 'qdisc', 'show', 'dev', host.link)) if q['kind'] == 'netem')
    lost[host.kind] = lost.get(host.kind, 0) + qdisc['drops']
    host.run('tc', 'qdisc', 'del', 'dev', host.link, 'root')


def packets_were_lost():
    check(lost.get('rxe') and lost.get('roci'), f'lost: {lost}')
    return f'lost: {lost}'


def lossy(server, client, percent, name, args, option):
    netem(percent, server, client)
    try:
        world.transfer(server, client, [name, *args.split()], option, seconds=40)
    finally:
        for host in (server, client):
            end_netem(host)


def killed(server_host, client_host):
    """The survivor sees the oldest request fail and all others flushed, and the next pair works."""
    port = str(next_port())
    argv = [program('survivor'), '-p', port]
    server = server_host.start(*argv, '-g', server_host.gid_index(server_host.address))
    client = None
    try:
        wait_until('the server to listen', lambda: server_host.listens(int(port)) or not server.running())
        client = client_host.start(*argv, '-g', client_host.gid_index(client_host.address), server_host.address)
        wait_until('the stream', lambda: 'running' in client.text() or not client.running())
        check(client.running() and server.running(), f'server:\n{server.report()}\nclient:\n{client.report()}')
        server.end()
        check(client.wait(30) == 0, f'server:\n{server.report()}\nclient:\n{client.report()}')
    finally:
        server.end()
        if client:
            client.end()
    world.transfer(server_host, client_host, ['ibv_rc_pingpong', '-c', '-n', '100'], '-g')
    return client.text().splitlines()[-1] if client.text() else ''


def cases(rxe, roci, percents=(1,)):
    for server, client in ((rxe, roci), (roci, rxe)):
        way = f'{client.kind} to {server.kind}'
        yield f'{way}: the server is killed', lambda s=server, c=client: killed(s, c)
        for percent in percents:
            for name, args, option in PROGRAMS:
                yield (f'{way}, {percent}% lost both ways: {os.path.basename(name)} {args}',
                       lambda s=server, c=client, p=percent, n=name, a=args, o=option: lossy(s, c, p, n, a, o))
    yield 'packets were lost on both ways', packets_were_lost


if __name__ == '__main__':
    percents = (5,) if world.option('heavy') else (1, 5)
    sys.exit(tap(list(cases(*world.rxe_and_roci(), percents))))
