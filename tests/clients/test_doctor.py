# SPDX-License-Identifier: BSD-2-Clause
"""`roci doctor`: each finding is provoked, in namespaces. What it says of the kernel's devices and modules, tests/unit/roci/test_doctor.c
provokes."""
import contextlib
import json
import os
import shlex
import socket
import subprocess

from harness import ROCI, SLOW, Process, Skip, check, isolate, need, tap, veth_pair, wait_until


def doctor(*argv, before=':', status=0, env=None):
    """Runs `roci doctor --json` behind a line of shell, in a mount namespace. Returns {id: [findings]}."""
    script = f'{before}; exec {shlex.quote(ROCI)} doctor --json {" ".join(argv)}'
    done = subprocess.run(['unshare', '-m', 'bash', '-c', script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60 * SLOW, env=dict(os.environ, **(env or {})))
    check(status is None or done.returncode == status, f'exit status {done.returncode}, not {status}\n{done.stdout}{done.stderr}')
    findings = {}
    for finding in json.loads(done.stdout)['findings']:
        check(finding.get('proof'), f'a finding without a proof: {finding}')
        check(finding.get('fix') or finding['level'] in ('ok', 'note'), f'nothing to do or to paste: {finding}')
        findings.setdefault(finding['id'], []).append(finding)
    return findings


def expect(findings, kind, level, text, proof='', fix=''):
    for finding in findings.get(kind, []):
        if finding['level'] == level and text in finding['text'] and proof in finding.get('proof', '') and \
                fix in finding.get('fix', ''):
            return
    check(False, f'no finding {kind} ({level}) with {text!r}, {proof!r}, {fix!r}: {json.dumps(findings.get(kind), indent=1)}')


def well():
    findings = doctor()
    expect(findings, 'port', 'ok', 'roci0: port 1 is active', fix='ask for a path MTU of 1024')
    expect(findings, 'gid', 'ok', 'use GID index 0 (10.77.1.1, RoCE v2)', fix='-x 0')
    expect(findings, 'port-4791', 'ok', 'can be had on every address')
    expect(findings, 'interface', 'ok', 'veth1: 10.77.1.1', fix='mtu 9000')
    expect(findings, 'rundir', 'ok', '/dev/shm/roci-0')
    expect(findings, 'versions', 'ok', 'libibverbs.so.1')


def under_roci_run():
    """It sees roci0 at once, and reports it once."""
    process = here.start(ROCI, 'doctor', '--json', env={'ROCI_STATS': ''})  # which would print among the JSON
    check(process.wait(60) == 0, process.report())
    ports = [f for f in json.loads(process.text())['findings'] if f['id'] == 'port']
    check(len(ports) == 1 and ports[0]['text'].startswith('roci0: port 1 is active'), process.report())


def people():
    process = here.start(ROCI, 'doctor', plain=True, env={'ROCI_STATS': ''})
    check(process.wait(60) == 0, process.report())
    text = process.text()
    for part in ('\nok         roci0: port 1 is active', '\n           proof: ', '\n           try:   ', '\nno problems\n'):
        check(part in '\n' + text, f'{part!r} is missing:\n{text}')


def large_mtu():
    here.run('ip', 'link', 'set', 'veth1', 'mtu', '9000')
    findings = doctor()
    here.run('ip', 'link', 'set', 'veth1', 'mtu', '1500')
    expect(findings, 'interface', 'ok', 'MTU of 9000 carries RDMA packets of 4096 bytes')


def port_taken_by_a_program():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(('10.77.1.1', 4791))
        findings = doctor(status=1)
    expect(findings, 'port-4791', 'problem', 'UDP port 4791 of 10.77.1.1 (veth1)', f'/proc/{os.getpid()}/fd has the socket',
           f'end process {os.getpid()}')
    check(len(findings['port-4791']) == 1, f'other addresses are reported too: {findings["port-4791"]}')


HOLD = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 4791)); print('bound', flush=True); time.sleep(600)
"""


def port_taken_twice():
    """Each address by another program: each is named for its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(('10.77.1.1', 4791))
        other = here.start('/usr/bin/python3', '-c', HOLD, plain=True)
        try:
            wait_until('the other socket', lambda: 'bound' in other.text() or not other.running())
            findings = doctor(status=1)
        finally:
            other.end()
    expect(findings, 'port-4791', 'problem', 'UDP port 4791 of 10.77.1.1', f'/proc/{os.getpid()}/fd has the socket')
    expect(findings, 'port-4791', 'problem', 'UDP port 4791 of 127.0.0.1', f'/proc/{other.pid}/fd has the socket')


def port_taken_over_ipv6():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as taken:
        taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind(('::1', 4791))
        expect(doctor(status=1), 'port-4791', 'problem', 'UDP port 4791 of ::1 (lo)', f'/proc/{os.getpid()}/fd')


def port_shared_with_roci():
    """Our own processes share the port: that is no problem."""
    server = here.start('ibv_rc_pingpong', '-d', 'roci0', '-g', '0', '-p', '20991')
    try:
        expect(doctor(), 'port-4791', 'ok', 'can be had')
    finally:
        server.end()


def only_loopback():
    """In a network namespace where nothing but lo is up."""
    findings = doctor(before=f'exec unshare -n bash -c "ip link set lo up; exec {shlex.quote(ROCI)} doctor --json"')
    expect(findings, 'interface', 'warning', 'between processes of this machine only')
    expect(findings, 'gid', 'ok', 'use GID index 0 (127.0.0.1')


def only_link_local():
    """A network namespace with nothing but lo and a pair of interfaces that have link-local addresses."""
    links = ('ip link set lo up; ip link add near type veth peer name far; ip link set near addrgenmode none up; ip link set far addrgenmode none up; '
             'ip addr add fe80::1/64 dev near nodad')
    for peer, status, who in (('', 0, 'hosts on the same link'), ('fe80::3%near', 1, 'that host')):
        findings = doctor(status=status, before=f'exec unshare -n bash -c "{links}; exec {shlex.quote(ROCI)} doctor --json {peer}"')
        expect(findings, 'gid', 'ok', f'(fe80::1, RoCE v2) for {who}')


def nothing_is_up():
    findings = doctor(status=1, before=f'exec unshare -n {shlex.quote(ROCI)} doctor --json')
    expect(findings, 'interface', 'problem', 'no interface is up', fix='ip link set lo up')
    expect(findings, 'port', 'warning', 'roci0: port 1 is down')


def limits():
    findings = doctor(before='ulimit -l 64; ulimit -n 64')
    expect(findings, 'memlock', 'note', '64.0 KiB', '`ulimit -l` is 64 KiB', 'memlock')
    expect(findings, 'files', 'warning', 'only 64 files', '`ulimit -n` is 64', 'ulimit -n 1024')


def socket_buffers():
    """Without CAP_NET_ADMIN of the machine, the sysctl is the limit. What was granted is what is said."""
    with open('/proc/sys/net/core/rmem_max') as f:
        most = int(f.read())
    findings = doctor()
    if most >= 8 << 20:
        check('receive-buffer' not in findings, findings)
    else:
        expect(findings, 'receive-buffer', 'warning' if most < 1 << 20 else 'note', 'to receive', f'granted {most}',
               'sysctl -w net.core.rmem_max=8388608')


def full_shm():
    findings = doctor(before='mount -t tmpfs -o size=2m none /dev/shm')  # roci0 needs 3
    expect(findings, 'rundir', 'warning', '/tmp/roci-0', '/dev/shm/roci-0 cannot be used: less than 4 MiB are free')


def squatted_rundir():
    findings = doctor(before='mount -t tmpfs none /dev/shm; mkdir -m 0777 /dev/shm/roci-0')
    expect(findings, 'rundir', 'warning', '/tmp/roci-0', 'not a directory of yours alone')


def no_rundir():
    findings = doctor(status=1, env={'ROCI_RUNDIR': '/nonexistent/folder'})
    expect(findings, 'rundir', 'problem', 'no folder', '/nonexistent/folder: No such file', 'ROCI_RUNDIR=DIR')
    expect(findings, 'open', 'problem', 'roci0 cannot be opened', fix='`roci run -- ibv_devinfo` says why')


def ptrace_scope():
    for scope, local in (1, 'the local path of roci0 allows it'), (2, 'roci0 takes the wire in place of its local path'):
        fake = f'mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && echo {scope} >/proc/sys/kernel/yama/ptrace_scope'
        expect(doctor(before=fake), 'ptrace', 'note', local, f'ptrace_scope is {scope}', 'sysctl -w kernel.yama.ptrace_scope=0')


def packet_filter():
    fake = 'mount -t tmpfs none /mnt; echo "nf_tables 1000 3 - Live 0x0" >/mnt/m; mount --bind /mnt/m /proc/modules'
    if not os.path.exists('/proc/modules'):
        raise Skip('this kernel has no modules')
    expect(doctor(before=fake), 'packet-filter', 'note', 'may be active', 'nf_tables is in use', 'nft list ruleset')


def libraries_missing():
    """roci without its libraries: said, with what to do."""
    findings = doctor(status=1, before=f'cp {shlex.quote(ROCI)} /dev/shm/roci-alone; exec /dev/shm/roci-alone doctor --json')
    expect(findings, 'roci0', 'problem', 'roci0 does not work here', 'exit status 126')
    os.unlink('/dev/shm/roci-alone')


@contextlib.contextmanager
def serving(host=None):
    """`roci serve` at the other end."""
    host = host or there
    server = host.start(ROCI, 'serve', plain=True)
    try:
        wait_until('roci serve', lambda: host.listens(18518) or not server.running())
        check(server.running(), server.report())
        yield
    finally:
        server.end()


def a_host():
    with serving():
        findings = doctor(there.address)
    expect(findings, 'route', 'ok', f'packets to {there.address} leave from {here.address}; the MTU of the route is 1500')
    expect(findings, 'gid', 'ok', f'({here.address}, RoCE v2) for that host', fix='-x ')
    expect(findings, 'ends-gid', 'ok', f'both ends use RoCE v2 over IPv4: {here.address} here, {there.address} there')
    expect(findings, 'ends-mtu', 'ok', 'both ends carry RDMA packets of 1024 bytes', 'SIOCGIFMTU')
    expect(findings, 'ends-subnet', 'ok', 'both ends are in one subnet', f'{here.address}/24 here, {there.address}/24 there')
    check('ends-fragments' not in findings, findings)
    expect(findings, 'peer-send', 'ok', 'a small SEND gets through', 'roci0 here and roci0 there')
    expect(findings, 'peer-out', 'ok', 'full packets get there')
    expect(findings, 'peer-in', 'ok', 'full packets come back')


def this_host():
    """`roci serve` on this machine: packets are sent all the same, not copied from memory to memory."""
    def received():
        return json.loads(here.run('ip', '-s', '-j', 'link', 'show', 'lo'))[0]['stats64']['rx']['bytes']
    with serving(here):
        before = received()
        findings = doctor('127.0.0.1')
        grown = received() - before
    expect(findings, 'peer-out', 'ok', 'full packets get there', 'ROCI_PATH=wire roci ping')
    check(grown > 2 * 65536, f'{grown} bytes went through loopback')


def a_host_over_ipv6():
    with serving():
        findings = doctor('fd77:1::2')
    expect(findings, 'gid', 'ok', '(fd77:1::1, RoCE v2) for that host')
    expect(findings, 'peer-in', 'ok', 'full packets come back')


def mtus_that_differ():
    here.run('ip', 'link', 'set', 'veth1', 'mtu', '9000')
    try:
        with serving():
            findings = doctor(there.address, status=None)
    finally:
        here.run('ip', 'link', 'set', 'veth1', 'mtu', '1500')
    expect(findings, 'ends-mtu', 'warning', 'RDMA packets of 4096 bytes here, 1024 there; use a path MTU of 1024', fix='-m 1024')


def masks_that_differ():
    there.run('ip', 'addr', 'del', f'{there.address}/24', 'dev', 'veth1')
    there.run('ip', 'addr', 'add', f'{there.address}/16', 'dev', 'veth1')
    try:
        with serving():
            findings = doctor(there.address)
    finally:
        there.run('ip', 'addr', 'del', f'{there.address}/16', 'dev', 'veth1')
        there.run('ip', 'addr', 'add', f'{there.address}/24', 'dev', 'veth1')
    expect(findings, 'ends-subnet', 'warning', 'different masks: /24 here, /16 there', fix='ip addr')


def behind_a_router():
    """here - router - there, on two subnets."""
    _, router = veth_pair()
    router.run('ip', 'link', 'add', 'beyond', 'type', 'veth', 'peer', 'name', 'beyond', 'netns', str(there.pid))
    for host, last in ((router, 1), (there, 2)):
        host.run('ip', 'addr', 'add', f'10.80.0.{last}/24', 'dev', 'beyond')
        host.run('ip', 'link', 'set', 'beyond', 'up')
    router.run('sysctl', '-qw', 'net.ipv4.ip_forward=1')
    here.run('ip', 'route', 'add', '10.80.0.0/24', 'via', router.address)
    there.run('ip', 'route', 'add', router.address.rsplit('.', 1)[0] + '.0/24', 'via', '10.80.0.1')
    with serving():
        findings = doctor('10.80.0.2')
    expect(findings, 'ends-subnet', 'note', 'different subnets: routers carry RoCE v2', '10.80.0.2/24 there', 'tracepath 10.80.0.2')
    expect(findings, 'peer-in', 'ok', 'full packets come back')


def fragments():
    """roci0's port has the MTU of GID 0, and the way to this host is by another interface, which carries less."""
    here.run('ip', 'link', 'set', 'veth1', 'mtu', '9000')
    here.run('ip', 'link', 'add', 'slim', 'type', 'veth', 'peer', 'name', 'slim', 'netns', str(there.pid))
    try:
        for host, address in ((here, '10.79.0.1'), (there, '10.79.0.2')):
            host.run('ip', 'addr', 'add', f'{address}/24', 'dev', 'slim')
            host.run('ip', 'link', 'set', 'slim', 'up')
        wait_until('addresses', lambda: 'tentative' not in here.run('ip', '-6', 'addr', 'show', 'dev', 'slim'))
        with serving():
            findings = doctor('10.79.0.2')
    finally:
        here.run('ip', 'link', 'del', 'slim')
        here.run('ip', 'link', 'set', 'veth1', 'mtu', '1500')
    expect(findings, 'ends-mtu', 'ok', 'RDMA packets of 1024 bytes')
    expect(findings, 'ends-fragments', 'warning', 'here, packets go in IP fragments unless the program asks for a path MTU of 1024',
           'active MTU is 4096, and the interface of 10.79.0.1 carries 1024', '-m 1024')
    expect(findings, 'gid', 'ok', '(10.79.0.1, RoCE v2) for that host')


def a_host_without_serve():
    findings = doctor(there.address, status=1)
    expect(findings, 'peer-4791', 'problem', f'nothing listens on UDP port 4791 of {there.address}', 'Connection refused')
    expect(findings, 'peer-serve', 'problem', 'no `roci serve` listens on TCP port 18518', 'Connection refused', 'roci serve')


def another_port():
    expect(doctor(f'{there.address}:18999', status=1), 'peer-serve', 'problem', 'on TCP port 19000', 'Connection refused',
           'roci serve --port 18999')


def the_path_carries_less():
    """Both interfaces have an MTU of 9000, and a bridge between them one of 1500: it drops what is longer, without a word. rdma_cm
    finds the path MTU."""
    bridge = subprocess.Popen(['unshare', '-n', 'sleep', '600'])
    own = os.readlink('/proc/self/ns/net')
    wait_until('the namespace of the bridge', lambda: os.readlink(f'/proc/{bridge.pid}/ns/net') != own)

    def within(*argv):
        here.run('nsenter', '-t', str(bridge.pid), '-n', '--', *argv)
    try:
        within('ip', 'link', 'add', 'br0', 'type', 'bridge')
        for host, name, address in ((here, 'far1', '10.78.0.1'), (there, 'far2', '10.78.0.2')):
            host.run('ip', 'link', 'add', name, 'mtu', '9000', 'type', 'veth', 'peer', 'name', name, 'mtu', '1500',
                     'netns', str(bridge.pid))
            within('ip', 'link', 'set', name, 'master', 'br0', 'up')
            host.run('ip', 'addr', 'add', f'{address}/24', 'dev', name)
            # A bridge lets a run of packets pass that is not cut yet.
            host.run('ethtool', '-K', name, 'gso', 'off', 'tx-udp-segmentation', 'off')
            host.run('ip', 'link', 'set', name, 'up')
        within('ip', 'link', 'set', 'br0', 'up')
        with serving():
            findings = doctor('10.78.0.2', status=None)
    finally:
        bridge.kill()
        bridge.wait()
    expect(findings, 'route', 'ok', 'the MTU of the route is 9000')
    expect(findings, 'peer-send', 'ok', 'a small SEND gets through')
    expect(findings, 'peer-out', 'ok', 'full packets get there: RDMA WRITE of 64 KiB')


def long_packets_are_dropped():
    """A firewall at the other host drops what is longer than a message of connection management. Only packets sent through show it."""
    need('nft')
    there.run('nft', 'add table inet short; add chain inet short in { type filter hook input priority 0; };'
                     'add rule inet short in udp dport 4791 udp length > 292 drop')
    try:
        with serving():
            findings = doctor(there.address, status=1)
    finally:
        there.run('nft', 'delete table inet short')
    expect(findings, 'peer-send', 'ok', 'a small SEND gets through')
    expect(findings, 'peer-out', 'problem', 'full packets do not get there, though small ones do', 'exit status', '`roci explain RETRY_EXC_ERR`: ')


def no_such_host():
    expect(doctor('nosuchhost.invalid', status=1), 'host', 'problem', 'nosuchhost.invalid ', 'getaddrinfo(3)')


def no_route():
    expect(doctor('192.0.2.1', status=1), 'route', 'problem', 'no route to 192.0.2.1', 'unreachable', 'ip route get 192.0.2.1')


def wrong_arguments():
    process = here.start(ROCI, 'doctor', '--jsn', plain=True)
    check(process.wait(60) == 2 and "did you mean '--json'" in process.text(), process.report())
    process = here.start(ROCI, 'doctor', 'one', 'two', plain=True)
    check(process.wait(60) == 2 and 'one host at most' in process.text(), process.report())


isolate()
here, there = veth_pair()
tap([
    ('a machine without a problem', well),
    ('the text for people', people),
    ('under roci run, roci0 is reported once', under_roci_run),
    ('an interface with a large MTU', large_mtu),
    ('UDP port 4791 is taken by a program, which is named', port_taken_by_a_program),
    ('UDP port 4791 is taken by two programs', port_taken_twice),
    ('UDP port 4791 is taken over IPv6', port_taken_over_ipv6),
    ('UDP port 4791 is shared with our own processes', port_shared_with_roci),
    ('only loopback is up', only_loopback),
    ('only link-local addresses', only_link_local), ('nothing is up', nothing_is_up),
    ('ulimit -l and -n', limits),
    ('socket buffers', socket_buffers),
    ('a full /dev/shm', full_shm),
    ('a run directory that others can write', squatted_rundir),
    ('no run directory', no_rundir),
    ('ptrace_scope', ptrace_scope),
    ('a packet filter', packet_filter),
    ('the libraries are missing', libraries_missing),
    ('a host, sent to and back', a_host),
    ('a host over IPv6', a_host_over_ipv6),
    ('this host', this_host),
    ('MTUs that differ', mtus_that_differ),
    ('masks that differ', masks_that_differ),
    ('packets that go in fragments', fragments),
    ('a host behind a router', behind_a_router),
    ('a host where nothing runs', a_host_without_serve),
    ('another port of roci serve', another_port),
    ('the path carries less than the interface', the_path_carries_less),
    ('long packets are dropped', long_packets_are_dropped),
    ('no such host', no_such_host),
    ('no route', no_route),
    ('wrong arguments', wrong_arguments),
])
