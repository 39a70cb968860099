# SPDX-License-Identifier: BSD-2-Clause
"""The local path: which processes take it, and what happens where one is killed or stopped, or takes its memory back."""
import os
import re
import resource
import subprocess
import sys

from harness import DEVICE, ROCI, Host, check, isolate, next_port, program, run_pair, tap, veth_pair, wait_until

ASKED = {'ROCI_PATH': 'local'}  # ROCI_WHY tells of it then
WIRE = {'ROCI_PATH': 'wire'}


def counter(text, name):
    """A counter of ROCI_STATS, in all processes of the output together."""
    return sum(int(value) for value in re.findall(rf'^roci: {name} +(\d+)$', text, re.M))


def victim(case):
    def run():
        text = loopback.call(program('local_victim'), case, seconds=120)
        check(f'local_victim {case}: passed' in text, text)
        check(counter(text, 'local_qps') > 0, f'the local path was not taken:\n{text}')
        return text.splitlines()[-1]
    return run


def pingpong(server, client, server_env, client_env, sandbox=()):
    """What both sides printed and counted. `sandbox`: a program that starts the client."""
    port = next_port()
    argv = ['ibv_rc_pingpong', '-d', DEVICE, '-c', '-s', '50000', '-n', '50', '-p', str(port)]
    first = server.start(*argv, '-g', server.gid_index(server.address), env=server_env)
    wait_until('the server to listen', lambda: server.listens(port) or not first.running())
    second = client.start(*sandbox, *argv, '-g', client.gid_index(client.address), server.address, env=client_env)
    return '\n'.join(run_pair(first, second))


def taken():
    text = pingpong(loopback, loopback, {}, {})
    check(counter(text, 'local_qps') == 2 and counter(text, 'local_fetched') >= 100, text)
    check(counter(text, 'sent_packets') == 0, f'packets went by UDP, too:\n{text}')


def not_taken(server, client, client_env):
    def run():
        text = pingpong(server, client, {**ASKED, 'ROCI_WHY': '1'}, client_env)
        check(counter(text, 'local_qps') == 0 and counter(text, 'sent_packets') > 0, text)
        check(re.search(r'^roci: why: a QP whose peer is QP 0x[0-9a-f]+ takes the wire: ', text, re.M), f'nobody says why:\n{text}')
    return run


def stats_say_why():
    text = pingpong(loopback, loopback, WIRE, {'ROCI_CAPTURE': os.devnull})
    check('roci: no local path: ROCI_PATH asks for the wire\n' in text, text)
    check('roci: no local path: ROCI_CAPTURE captures packets\n' in text, text)
    text = pingpong(loopback, loopback, {}, WIRE)
    check('roci: no local path to some processes: the peer takes no part' in text, text)
    text = pingpong(loopback, loopback, {}, {})
    check('no local path' not in text, text)


def refused_copies():
    """A filter of system calls refuses the copies: neither side may take the local path, since each would wait for the other."""
    text = pingpong(loopback, loopback, {}, {}, sandbox=[program('no_copy')])
    check(counter(text, 'local_qps') == 0 and counter(text, 'sent_packets') > 0, text)
    check('roci: no local path: the kernel or a filter refuses process_vm_readv(2)\n' in text, text)
    check('roci: no local path to some processes: the peer takes no part (' in text, text)


def small_files():
    """The shared file is large, and has holes. The kernel kills who makes a file beyond its limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (32 << 20, before[1]))
    try:
        text = pingpong(loopback, loopback, {}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    check(counter(text, 'local_qps') == 0 and counter(text, 'sent_packets') > 0, text)
    check('roci: no local path: there is no room for its shared memory, or RLIMIT_FSIZE is too small\n' in text, text)


def option():
    """roci run --path sets ROCI_PATH, and refuses what is no path."""
    out = subprocess.run([ROCI, 'run', '--path', 'local', '--', 'sh', '-c', 'echo $ROCI_PATH'], capture_output=True, text=True)
    check(out.stdout == 'local\n', out)
    out = subprocess.run([ROCI, 'run', '--path', 'tunnel', '--', 'true'], capture_output=True, text=True)
    check(out.returncode == 2 and "--path 'tunnel' is unknown; use one of: local, wire" in out.stderr, out)


if __name__ == '__main__':
    isolate()
    os.environ['ROCI_STATS'] = '1'
    os.environ.pop('ROCI_PATH', None)
    loopback = Host('loopback')
    host_a, host_b = veth_pair()
    sys.exit(tap([
        ('two processes of one host take it', taken),
        ('roci run --path', option),
        ('one of them asks for the wire', not_taken(loopback, loopback, WIRE)),
        ('one of them loses packets on purpose', not_taken(loopback, loopback, {'ROCI_FAULT': 'loss=0.001'})),
        ('another network namespace', not_taken(host_a, host_b, {})),
        ('ROCI_STATS says why not', stats_say_why),
        ('a filter that refuses the copies', refused_copies),
        ('a limit for the sizes of files', small_files),
        ('memory is deregistered while a peer writes', victim('deregister')),
        ('likewise, and the peer is stopped', victim('stopped')),
        ('memory is deregistered while a long WRITE is copied', victim('long')),
        ('the QP goes to ERR while its peer writes', victim('error')),
        ('the QP is reset while its peer writes', victim('reset')),
        ('a memory window ends while its peer reads', victim('window')),
        ('a sender is killed', victim('sender-killed')),
        ('the owner of the memory is killed', victim('owner-killed')),
        ('the owner of the memory calls exec', victim('exec')),
        ('the owner of the memory forks', victim('fork')),
        ('the target takes its registered memory away', victim('target-unmapped')),
        ('the initiator takes its registered memory away', victim('source-unmapped')),
    ]))
