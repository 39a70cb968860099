# SPDX-License-Identifier: BSD-2-Clause
"""Several processes: many on one address, a peer that is killed, a process that idles, and the memory of an open device."""
import glob
import os
import sys
import time

from harness import DEVICE, HERE, SANITIZER, Failure, Skip, check, isolate, next_port, program, run_pair, tap, transfer, veth_pair, wait_until


def four_pairs():
    """Four pairs of processes share one address at the same time. A process that ends may lose packets of its neighbours, and
    UC does not repeat them, so the UC pair ends first."""
    gid = host_a.gid_index(host_a.address)
    servers, clients = [], []
    for name, count in (('ibv_rc_pingpong', 5000), ('ibv_uc_pingpong', 200), ('ibv_srq_pingpong', 5000), ('ibv_rc_pingpong', 5000)):
        argv = [name, '-d', DEVICE, '-g', gid, '-c', '-n', str(count), '-p', str(next_port())]
        server = host_a.start(*argv)
        wait_until('the server to listen', lambda: host_a.listens(int(argv[-1])) or not server.running())
        servers.append(server)
        clients.append(argv)
    clients = [host_a.start(*argv, host_a.address) for argv in clients]
    for server, client in zip(servers, clients):
        run_pair(server, client)


def killed(server_host, client_host):
    """Kills a peer in the middle of a stream. The other side gets RETRY_EXC_ERR, and the host continues to work."""
    port = str(next_port())
    argv = [program('survivor'), '-p', port]
    server = server_host.start(*argv, '-g', server_host.gid_index(server_host.address))
    wait_until('the server to listen', lambda: server_host.listens(int(port)) or not server.running())
    client = client_host.start(*argv, '-g', client_host.gid_index(client_host.address), server_host.address)
    try:
        wait_until('the stream', lambda: 'running' in client.text() or not client.running())
        check(client.running() and server.running(), f'server:\n{server.report()}\nclient:\n{client.report()}')
        server.end()
        status = client.wait(60)
    finally:
        server.end()
        client.end()
    check(status == 0, f'server:\n{server.report()}\nclient:\n{client.report()}')
    transfer(server_host, client_host, ['ibv_rc_pingpong', '-d', DEVICE, '-c'],
             ['-g', server_host.gid_index(server_host.address)], ['-g', client_host.gid_index(client_host.address)])
    return client.text()


def thread_states(pid):
    """(state, context switches) of each thread of a process."""
    states = {}
    for thread in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{thread}/status') as f:
            fields = dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)
        states[thread] = (fields['State'][0],
                          int(fields['voluntary_ctxt_switches']) + int(fields['nonvoluntary_ctxt_switches']))
    return states


def idle():
    """A connected device without traffic sleeps: for two seconds, no thread of the process wakes up."""
    process = host_a.start(program('idle'), '-g', host_a.gid_index(host_a.address))
    try:
        wait_until('the program to idle', lambda: 'idle' in process.text() or not process.running())
        check(process.running(), process.report())
        seen = []

        def sleeps():
            before = thread_states(process.pid)
            time.sleep(2)
            after = thread_states(process.pid)
            seen.append(after)
            return before == after and all(state == 'S' for state, _ in after.values())
        try:
            wait_until('two seconds in which no thread wakes', sleeps)
        except Failure:
            raise Failure(f'threads still wake without traffic: {seen}') from None
    finally:
        process.end()
    return f'{len(seen[-1])} threads asleep'


def footprint():
    return host_a.call(program('footprint'), '-g', host_a.gid_index(host_a.address))


def preloaded_sockets():
    """librspreload.so makes rsockets of a program's sockets, but not of the device's own."""
    library = sorted(glob.glob('/usr/lib/*/rsocket/librspreload.so*') + glob.glob('/usr/lib*/rsocket/librspreload.so*'))
    if not library:
        raise Skip('librspreload.so is not installed')
    if SANITIZER:
        raise Skip('LD_PRELOAD is the sanitizer\'s')
    argv = ['/usr/bin/python3', os.path.join(HERE, 'tcp_pair.py'), str(next_port())]
    env = {'LD_PRELOAD': library[0]}
    server = host_a.start(*argv, 'server', env=env)
    wait_until('the server to listen', lambda: 'listening' in server.text() or not server.running())
    texts = run_pair(server, host_a.start(*argv, 'client', env=env))
    check('cannot listen' not in ''.join(texts) and 'sent_packets' in texts[1], '\n'.join(texts))


if __name__ == '__main__':
    isolate()
    host_a, host_b = veth_pair()
    sys.exit(tap([
        ('four pairs of processes on one address', four_pairs),
        ('kill -9 of a peer on this host', lambda: killed(host_a, host_a)),
        ('kill -9 of a peer on another host', lambda: killed(host_a, host_b)),
        ('an idle device sleeps', idle),
        ('a preloaded library of sockets', preloaded_sockets),
        ('memory of the device and of a queue pair', footprint),
    ]))
