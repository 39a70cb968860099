#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/connect.py [--build BUILD] [--rounds N] [--count N] [--open N]: connections per second, beside TCP's.

In alternating rounds: connect_many over rdma_cm and tcp_many over TCP, on loopback and across a veth between two network
namespaces. Each connection is opened, carries eight bytes in both directions, and is closed; OPEN of them are open at once.
Prints every round, the medians and their ratio. Needs no root. Nothing here fails for being slow.
"""
import argparse
import os
import re
import statistics
import sys

os.environ['PATH'] += ':/usr/sbin:/sbin'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'clients'))
import harness  # noqa: E402
from cm_server import serve  # noqa: E402
from harness import Host, check, isolate, next_port, program, run_pair, veth_pair, wait_until  # noqa: E402


def rate(text):
    return float(re.search(r'(\d+) connections/s', text)[1])


def rdma_rate(server, client, address, args):
    argv = [program('connect_many'), '-p', str(next_port()), *args]
    _, text = run_pair(serve(server, *argv, '-b', address), client.start(*argv, '-s', address))
    return rate(text)


def tcp_rate(server, client, address, args):
    port = next_port()
    argv = [program('tcp_many'), '-p', str(port), *args]
    listener = server.start(*argv, '-b', address, plain=True)
    wait_until('tcp_many', lambda: server.listens(port) or not listener.running())
    _, text = run_pair(listener, client.start(*argv, '-s', address, plain=True))
    return rate(text)


def compare(name, server, client, address, options):
    args = ['-n', str(options.count), '-o', str(options.open)]
    ours, theirs = [], []
    for number in range(options.rounds):
        # They take turns to go first, so that both run on a warm machine equally often.
        for turn in (0, 1):
            if (number + turn) % 2:
                theirs.append(tcp_rate(server, client, address, args))
            else:
                ours.append(rdma_rate(server, client, address, args))
        print(f'{name:9} round {number + 1}: rdma_cm {ours[-1]:7.0f} connections/s   TCP {theirs[-1]:7.0f} connections/s',
              flush=True)
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    print(f'{name:9} median:  rdma_cm {ours:7.0f} connections/s   TCP {theirs:7.0f} connections/s   '
          f'ratio {ours / theirs:.2f}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(os.path.dirname(__file__), '..', 'build'))
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--count', type=int, default=5000, help='connections of each measurement')
    parser.add_argument('--open', type=int, default=100, help='how many are open at once')
    options = parser.parse_args()
    check(options.open > 0 and options.count % options.open == 0, '--count must be a multiple of --open')
    harness.ROCI = os.path.abspath(os.path.join(options.build, 'roci', 'roci'))
    harness.PROGRAMS = os.path.abspath(os.path.join(options.build, 'tests', 'clients'))
    check(os.access(harness.ROCI, os.X_OK), f'{harness.ROCI} is not built')
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    compare('loopback', loopback, loopback, '127.0.0.1', options)
    compare('veth', host_b, host_a, host_b.address, options)


if __name__ == '__main__':
    try:
        main()
    except harness.Failure as failure:
        sys.exit(f'connect.py: {failure}')
