# SPDX-License-Identifier: BSD-2-Clause
"""Runs our own programs, which can be built with a sanitizer: every opcode, and many threads."""
import sys

from harness import SANITIZER, Host, isolate, program, tap, transfer, veth_pair


def all_ops(server, client, address):
    server_out, client_out = transfer(server, client, [program('all_ops')], ['-g', server.gid_index(address(server))],
                                      ['-g', client.gid_index(address(client))])
    return client_out


def mt_smoke(threads, operations):
    return loopback.call(program('mt_smoke'), '-t', str(threads), '-n', str(operations), '-g',
                         loopback.gid_index('127.0.0.1'), seconds=120)


if __name__ == '__main__':
    isolate()
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    opcodes = [
        ('all_ops over loopback', lambda: all_ops(loopback, loopback, lambda host: '127.0.0.1')),
        ('all_ops over IPv6 loopback', lambda: all_ops(loopback, loopback, lambda host: '::1')),
        ('all_ops between two hosts, IPv4', lambda: all_ops(host_a, host_b, lambda host: host.address)),
        ('all_ops between two hosts, IPv6', lambda: all_ops(host_a, host_b, lambda host: host.ipv6)),
        ('memory that is written to meanwhile', lambda: loopback.call(program('live_memory'), '-g',
                                                                      loopback.gid_index('127.0.0.1'))),
    ]
    threads = [
        ('mt_smoke, 4 threads', lambda: mt_smoke(4, 100000)),
        ('mt_smoke, 1 thread', lambda: mt_smoke(1, 10000)),
    ]
    # The opcode programs read memory while the device writes it. That is normal for RDMA, but the thread sanitizer forbids it.
    sys.exit(tap(threads if SANITIZER == 'thread' else opcodes + threads))
