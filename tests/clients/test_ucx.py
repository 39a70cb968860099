# SPDX-License-Identifier: BSD-2-Clause
"""Runs UCX (Debian's ucx-utils): it must see roci0, and every test of ucx_perftest must succeed on one host and between two.
A case is one pair of processes that runs a batch of tests.
"""
import re
import sys
import tempfile

from harness import SANITIZER, Skip, check, isolate, need, next_port, run_pair, tap, veth_pair, wait_until

LATENCY, RATE = '-n 20 -w 2', '-n 200 -w 10'
BATCH = [
    f'tag_lat -t tag_lat {LATENCY}',
    f'tag_bw -t tag_bw {RATE}',
    f'tag_eager -t tag_bw -s 5000 {RATE}',
    'tag_rendezvous -t tag_bw -s 1000000 -n 10 -w 2',
    f'tag_sync -t tag_sync_lat {LATENCY}',
    f'put_lat -t ucp_put_lat {LATENCY}',
    f'put_bw -t ucp_put_bw -s 20000 {RATE}',
    f'get -t ucp_get -s 20000 {LATENCY}',
    f'am_lat -t ucp_am_lat {LATENCY}',
    f'am_bw -t ucp_am_bw -s 3000 {RATE}',
    f'stream -t stream_bw {RATE}',
    f'add -t ucp_add {RATE}',
    f'fadd -t ucp_fadd {LATENCY}',
    f'swap -t ucp_swap {LATENCY}',
    f'cswap -t ucp_cswap {LATENCY}',
]
UCT = [
    f'am_lat -t am_lat {LATENCY}',
    f'am_bw -t am_bw -D zcopy -s 1000 {RATE}',
    f'put_lat -t put_lat {LATENCY}',
    f'put_bw -t put_bw -D zcopy -s 100000 {RATE}',
    f'get -t get -D bcopy {LATENCY}',
    f'get_zcopy -t get -D zcopy -s 100000 {LATENCY}',
    f'add -t add_mr {RATE}',
    f'fadd -t fadd {LATENCY}',
    f'cswap -t cswap {LATENCY}',
]
# UCX makes RC connections by messages over UD. Its aliases (rc_v) add UD themselves; a list of transports must name it.
RC = {'UCX_TLS': 'rc_verbs,ud_verbs:aux'}
UD = {'UCX_TLS': 'ud_verbs'}
# The leak search does not work in a process whose /proc belongs to another PID namespace.
FOR_SANITIZER = {'ASAN_OPTIONS': 'detect_leaks=0'} if SANITIZER else {}
# Makes UCX believe that the two sides are two machines. Otherwise it prefers shared memory.
ELSEWHERE = ['unshare', '--ipc', '--pid', '--kill-child']


def need_ucx(program):
    need(program)
    if SANITIZER == 'thread':
        raise Skip("the thread sanitizer does not see UCX's locks, and crashes where UCX patches mmap()")


def ucx_info():
    need_ucx('ucx_info')
    text = host_a.call('ucx_info', '-d', env=FOR_SANITIZER)
    for transport in ('rc_verbs', 'ud_verbs'):
        check(re.search(rf'Transport: {transport}\n#\s+Device: roci0:1\n', text), f'no {transport} in:\n{text}')
    check(re.search(r'atomic_fadd: 64 bit', text[text.index('rc_verbs'):]), f'no atomics in:\n{text}')


def batch(server_host, client_host, tests, env, args=()):
    """Returns the transports that UCX reports to use."""
    need_ucx('ucx_perftest')
    env = dict(env, **FOR_SANITIZER, UCX_NET_DEVICES='roci0:1', UCX_LOG_LEVEL='info')
    with tempfile.NamedTemporaryFile('w') as file:
        file.write('\n'.join(tests) + '\n')
        file.flush()
        port = next_port()
        argv = ['ucx_perftest', '-f', '-p', str(port), '-b', file.name, *args]
        server = server_host.start(*ELSEWHERE, *argv, env=env)
        wait_until('ucx_perftest to listen', lambda: server_host.listens(port) or not server.running())
        client = client_host.start(*argv, server_host.address, env=env)
        text = ''.join(run_pair(server, client))
    for line in tests:
        name = line.split()[0]
        check(re.search(rf'^ *{name} .*\d', text, re.M), f'no result of {name} in:\n{text}')
    check(' ERROR ' not in text, text)
    return ' '.join(sorted(set(re.findall(r'([ru][cd]_verbs)/roci0:1', text))))


def directly(server_host, client_host, transport):
    tests = UCT if transport == 'rc_verbs' else [line for line in UCT if line.startswith('am')]
    batch(server_host, client_host, tests, {}, ['-x', transport, '-d', 'roci0:1'])


def without_choice(server_host, client_host):
    """Sets no UCX variable except UCX_NET_DEVICES."""
    used = batch(server_host, client_host, BATCH, {})
    check('rc_verbs' in used, f'used: {used}')
    return used


def over_ipv6(env):
    """Names the IPv6 GID, because UCX prefers IPv4. The GID tables of both hosts have the same order."""
    index = host_a.gid_index(host_a.ipv6)
    check(index == host_b.gid_index(host_b.ipv6), 'the GID tables differ')
    batch(host_b, host_a, BATCH[:4], dict(env, UCX_IB_GID_INDEX=index))


def cases():
    yield 'ucx_info finds roci0', ucx_info
    for way, server, client in ('one host', host_a, host_a), ('two hosts', host_b, host_a):
        def case(name, function, *args, ends=(server, client)):
            return f'{way}: {name}', lambda: function(*ends, *args)
        yield case('no UCX variable but UCX_NET_DEVICES', without_choice)
        yield case('rc_verbs', batch, BATCH, RC)
        yield case('ud_verbs', batch, BATCH, UD)
        yield case('rc_verbs below UCP', directly, 'rc_verbs')
        yield case('ud_verbs below UCP', directly, 'ud_verbs')
    yield 'two hosts: rc_verbs over IPv6', lambda: over_ipv6(RC)
    yield 'two hosts: ud_verbs over IPv6', lambda: over_ipv6(UD)


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair()
    sys.exit(tap(list(cases())))
