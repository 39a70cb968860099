# SPDX-License-Identifier: BSD-2-Clause
"""Servers that wait for connections through rdma_cm: when they are ready."""
import os

from harness import Failure, wait_until

ROCE_PORT = 4791


def udp_inodes(pid):
    """Sockets of the namespace of `pid` that are bound to RoCE's port."""
    inodes = set()
    for table in ('udp', 'udp6'):
        with open(f'/proc/{pid}/net/{table}') as f:
            for line in f.readlines()[1:]:
                field = line.split()
                if field[1].endswith(f':{ROCE_PORT:04X}'):
                    inodes.add(f'socket:[{field[9]}]')
    return inodes


def listens(process):
    """Whether the process has bound RoCE's port, which it does when it begins to listen, if not before."""
    try:
        mine = {os.readlink(f'/proc/{process.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{process.pid}/fd')}
        return bool(mine & udp_inodes(process.pid))
    except OSError:
        return False


def serve(host, *argv, env=None, ready=listens):
    """Starts a server, and returns it when it is ready, which is a question that can be asked of its process."""
    server = host.start(*argv, env=env)
    try:
        wait_until(f'{argv[0]} to listen', lambda: ready(server) or not server.running())
    except Failure as failure:
        server.end()
        raise Failure(f'{failure}\n{server.report()}') from None
    return server
