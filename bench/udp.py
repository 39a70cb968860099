#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/udp.py [--roci ROCI] [--rounds N] [--seconds N]: the UDP link beside TCP.

In alternating rounds: ib_write_bw at 64 KiB and one stream of iperf3, over loopback and across a veth with MTU 9000 between
two network namespaces. Prints every round, the medians and their ratio; then the rates of 64-byte messages, beside TCP writes
of 64 bytes (one system call each); then the latencies of small messages. Needs no root. Nothing here fails for being slow.
"""
import argparse
import json
import os
import statistics
import sys

os.environ['PATH'] += ':/usr/sbin:/sbin'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'clients'))
import harness  # noqa: E402
from harness import DEVICE, Host, check, isolate, next_port, run_pair, transfer, veth_pair, wait_until  # noqa: E402

GBIT = 1e9


def result_line(text):
    """The figures of perftest's last table: the line after the one that begins with #bytes."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.lstrip().startswith('#bytes'):
            return lines[i + 1].split()
    raise harness.Failure('no result in:\n' + text)


def perftest(server, client, address, argv):
    _, text = transfer(server, client, [*argv, '-d', DEVICE, '-F'], ['-x', server.gid_index(address(server))],
                       ['-x', client.gid_index(address(client))], seconds=120)
    return result_line(text)


def write_gbit(server, client, address, seconds):
    return float(perftest(server, client, address,
                          ['ib_write_bw', '-s', '65536', '-D', str(seconds + 2), '-f', '1', '--report_gbits'])[3])


def message_rate(server, client, address, seconds, tool, size=64):
    row = perftest(server, client, address, [*tool, '-s', str(size), '-D', str(seconds + 2), '-f', '1'])
    return float(row[-1])


def tcp_gbit(server, client, address, seconds, *more):
    port = next_port()
    listener = server.start('iperf3', '-s', '-1', '-p', str(port), plain=True)
    wait_until('iperf3', lambda: server.listens(port))
    sender = client.start('iperf3', '-c', address(server), '-p', str(port), '-t', str(seconds), '-J', *more,
                          plain=True)
    _, text = run_pair(listener, sender, 120)
    return json.loads(text)['end']['sum_received']['bits_per_second'] / GBIT


def bandwidth(name, server, client, address, options):
    ours, theirs = [], []
    for number in range(options.rounds):
        # They take turns to go first, so that both run on a warm machine equally often.
        for turn in (0, 1):
            if (number + turn) % 2:
                theirs.append(tcp_gbit(server, client, address, options.seconds))
            else:
                ours.append(write_gbit(server, client, address, options.seconds))
        print(f'{name:10} round {number + 1}: ib_write_bw 64 KiB {ours[-1]:7.2f} Gbit/s   '
              f'iperf3 TCP {theirs[-1]:7.2f} Gbit/s', flush=True)
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    print(f'{name:10} median:  ib_write_bw 64 KiB {ours:7.2f} Gbit/s   iperf3 TCP {theirs:7.2f} Gbit/s   '
          f'ratio {ours / theirs:.2f}', flush=True)


def rates(name, server, client, address, options):
    tools = {'RDMA WRITE RC': ['ib_write_bw'], 'SEND RC': ['ib_send_bw'], 'SEND UD': ['ib_send_bw', '-c', 'UD']}
    found = {what: [] for what in [*tools, 'TCP']}
    for _ in range(options.rounds):
        for what, tool in tools.items():
            found[what].append(message_rate(server, client, address, options.seconds, tool))
        bits = tcp_gbit(server, client, address, options.seconds, '-l', '64', '-N') * GBIT
        found['TCP'].append(bits / 8 / 64 / 1e6)
    median = {what: statistics.median(rates) for what, rates in found.items()}
    for what in tools:
        print(f'{name:10} 64 bytes: {what:13} {median[what]:6.3f} million messages/s   iperf3 TCP {median["TCP"]:6.3f}   '
              f'ratio {median[what] / median["TCP"]:.2f}', flush=True)


def latency(name, server, client, address):
    for tool in ('ib_write_lat', 'ib_send_lat', 'ib_read_lat'):
        row = perftest(server, client, address, [tool, '-s', '8', '-n', '20000'])
        print(f'{name:10} {tool:12} 8 bytes: median {row[4]} us, 99% {row[7]} us, 99.9% {row[8]} us', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--roci', default=os.path.join(os.path.dirname(__file__), '..', 'build', 'roci', 'roci'))
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=int, default=3, help='of each measurement')
    options = parser.parse_args()
    harness.ROCI = os.path.abspath(options.roci)
    check(os.access(harness.ROCI, os.X_OK), f'{harness.ROCI} is not built')
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair(9000)
    ways = [('loopback', loopback, loopback, lambda host: '127.0.0.1'),
            ('veth 9000', host_a, host_b, lambda host: host.address)]
    for way in ways:
        bandwidth(*way, options)
    for way in ways:
        rates(*way, options)
    for way in ways:
        latency(*way)


if __name__ == '__main__':
    try:
        main()
    except harness.Failure as failure:
        sys.exit(f'udp.py: {failure}')
