# SPDX-License-Identifier: BSD-2-Clause
"""Runs mpi_all with Debian's Open MPI over UCX on roci0: four ranks on one host, and two ranks on each of two hosts.

mpirun starts a command on another host by a program like ssh. Here, that program enters the other host's network namespace.
It also gives the command a host name, a process and an IPC namespace, and a folder of its own. So neither Open MPI nor UCX
notices that both hosts are one machine.
"""
import os
import re
import subprocess
import sys
import tempfile

from harness import ROCI, SANITIZER, Skip, check, isolate, need, program, sanitizer_library, tap, veth_pair

RANKS = 4
# Open MPI leaks memory
FOR_SANITIZER = ['env', f'LD_PRELOAD={sanitizer_library()}', 'ASAN_OPTIONS=detect_leaks=0'] if SANITIZER else []
OWN = ['unshare', '--uts', '--ipc', '--pid', '--kill-child', '--mount-proc']
AGENT = """#!/bin/sh
# AGENT HOST COMMAND...: this agent always runs COMMAND on one host
shift
exec nsenter -t {pid} -n {own} sh -c 'hostname host-b; TMPDIR={dir}; export TMPDIR; '"$*"
"""


def mpirun(arguments, ucx, seconds=90, ranks=RANKS):
    """Returns what the ranks have printed."""
    need('mpirun')
    if not os.path.exists(program('mpi_all')):
        raise Skip('mpi_all was not built: libopenmpi-dev is not installed')
    if SANITIZER == 'thread':
        raise Skip("the thread sanitizer does not see the locks of Open MPI and UCX, and crashes where they patch mmap()")
    settings = {'UCX_NET_DEVICES': 'roci0:1', 'UCX_LOG_LEVEL': 'info', 'ROCI_STATS': os.environ.get('ROCI_STATS', ''), **ucx}
    exports = [word for name, value in settings.items() for word in ('-x', f'{name}={value}')]
    argv = ['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '-np', str(ranks), *arguments,
            '--mca', 'mpi_yield_when_idle', '1', '--mca', 'pml', 'ucx', '--mca', 'osc', 'ucx',
            *exports, *FOR_SANITIZER, ROCI, 'run', '--', program('mpi_all')]
    text = host_a.call(*argv, seconds=seconds, plain=True)
    for part in ('point to point', 'collectives', 'one-sided', 'done'):
        check(f'mpi_all: {part}\n' in text, f'"{part}" is missing:\n{text}')
    return text


def transports(text):
    """Those that UCX reports to use."""
    used = ' '.join(sorted(set(re.findall(r'([ru][cd]_verbs)/roci0:1', text))))
    check(used, f'UCX does not use roci0:\n{text}')
    return used


def one_host(ucx):
    return transports(mpirun(['--host', f'localhost:{RANKS}'], ucx))


def beside_spinning_programs():
    """A rank that waits for a processor is late, and nothing is lost. Nobody says otherwise: no packet comes out of order."""
    spinning = [host_a.start('sh', '-c', 'while kill -0 $PPID; do :; done', plain=True) for _ in range(os.cpu_count() + 1)]
    try:
        text = mpirun(['--host', 'localhost:2'], {'UCX_TLS': 'ib', 'ROCI_STATS': '1'}, seconds=140, ranks=2)
    finally:
        for spinner in spinning:
            spinner.end()
    check(text.count('roci: sent_packets') == 2, text)
    check(not re.search('naks_(sent|received)|rx_out_of_order', text), text)
    return ' '.join(re.findall(r'(?:retransmits|timeouts|probes) +\d+', text))


def two_hosts(ucx):
    probe = subprocess.run([*OWN, 'true'], stderr=subprocess.PIPE, text=True)
    if probe.returncode:
        raise Skip(f'no process namespace with a /proc of its own: {probe.stderr.strip()}')
    with tempfile.TemporaryDirectory() as directory:
        agent = os.path.join(directory, 'agent')
        os.mkdir(os.path.join(directory, 'b'))
        with open(agent, 'w') as file:
            file.write(AGENT.format(pid=host_b.pid, own=' '.join(OWN), dir=os.path.join(directory, 'b')))
        os.chmod(agent, 0o700)
        network = '10.77.0.0/16'
        return transports(mpirun(['--host', f'{host_a.address}:{RANKS // 2},{host_b.address}:{RANKS // 2}', '--map-by',
                                  'node', '--mca', 'plm_rsh_agent', agent, '--mca', 'oob_tcp_if_include', network], ucx))


def cases():
    yield 'one host: shared memory and roci0, as UCX chooses', lambda: one_host({})
    yield 'one host: roci0 only', lambda: one_host({'UCX_TLS': 'ib'})
    yield 'one host: two ranks beside programs that spin', beside_spinning_programs
    yield 'two hosts: as UCX chooses', lambda: two_hosts({})
    yield 'two hosts: ud_verbs', lambda: two_hosts({'UCX_TLS': 'ud_verbs'})


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair()
    sys.exit(tap(list(cases())))
