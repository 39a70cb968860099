# SPDX-License-Identifier: BSD-2-Clause
"""The two hosts in a guest, joined by a veth. With rxe_and_roci(), `rxe` is the first network namespace with the kernel's
Soft-RoCE, where programs run with the system's libraries, and `roci` is another namespace, where programs run under
`roci run`. With kernel_pair(), both hosts have devices of the kernel, and share the first namespace."""
import json
import os
import re
import resource
import shlex
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), 'clients'))

import cm_server  # noqa: E402
import harness  # noqa: E402
from harness import Host, Skip, check, run, wait_until  # noqa: E402

PROGRAMS = os.environ.get('ROCI_INTEROP', HERE)  # where Meson builds the programs of this directory
MODULES = {
    'rxe': ['crc32_generic', 'crc32_pclmul', 'rdma_rxe', 'ib_uverbs', 'rdma_ucm', 'ib_umad'],
    'siw': ['iw_cm', 'libcrc32c', 'ib_uverbs', 'rdma_ucm'],
}
harness.SLOW *= 3  # the guest's processor is emulated


class Side(Host):
    """A host with one RDMA device. `plain`: its programs run without `roci run`."""
    device = 'roci0'
    kind = 'roci'
    plain = False

    def start(self, *argv, env=None, plain=False):
        return super().start(*argv, env=env, plain=self.plain or plain)

    def gid_index(self, address):
        if address not in self.gids:
            text = self.call('ibv_devinfo', '-v', '-d', self.device)
            for index, gid in re.findall(r'GID\[\s*(\d+)\]:\s*(\S+?),?(?:\s|$)', text):
                self.gids[gid.replace('::ffff:', '')] = index
            check(address in self.gids, f'no GID {address} in:\n{text}')
        return self.gids[address]

    def sent_bytes(self):
        """Bytes that have left by its end of the veth so far."""
        return json.loads(self.run('ip', '-s', '-j', 'link', 'show', 'dev', self.link))[0]['stats64']['tx']['bytes']

    def connectable(self, process):
        """Whether a process listens through rdma_cm."""
        return cm_server.listens(process)

    def serve(self, *argv):
        """Starts a program that waits for connections through rdma_cm, and returns when it does."""
        return cm_server.serve(self, *argv, ready=self.connectable)


class KernelSide(Side):
    """A host with a device of the kernel."""
    plain = True

    def connectable(self, process):
        ids = json.loads(self.run('rdma', '-j', 'resource', 'show', 'cm_id') or '[]')
        return any(i.get('pid') == process.pid and i.get('state') == 'LISTEN' for i in ids)


class NewerKernelSide(KernelSide):
    """Its programs run with a newer libibverbs than the system's (newer_verbs.py)."""
    launcher = shlex.split(os.environ.get('ROCI_NEWER_VERBS', ''))

    def start(self, *argv, **kw):
        return super().start(*self.launcher, shutil.which(argv[0]), *argv[1:], **kw)


def as_side(host, side):
    made = side(host.name, None, host.address)
    made.__dict__.update(host.__dict__)
    return made


def load(kind):
    run('modprobe', '-a', 'veth', 'sch_netem', *MODULES[kind])
    if kind == 'siw' and not os.path.isdir('/sys/module/siw'):
        run('insmod', os.environ['ROCI_SIW'])


def newer(side):
    """The same side; with the newer libibverbs if its device is the kernel's."""
    if not NewerKernelSide.launcher:
        raise Skip(os.environ.get('ROCI_NO_NEWER_VERBS', 'no newer libibverbs'))
    return as_side(side, NewerKernelSide) if isinstance(side, KernelSide) else side


def add_device(side, kind, name, addresses):
    side.kind, side.device = kind, name
    run('rdma', 'link', 'add', name, 'type', kind, 'netdev', side.link)
    if kind == 'rxe':
        wait_until(f'the GIDs of {name}', lambda: all(a in side.call('ibv_devinfo', '-v', '-d', name) for a in addresses))


def rxe_and_roci(mtu=1500):
    """(rxe, roci), joined."""
    load('rxe')
    a, b = harness.veth_pair(mtu)
    rxe, roci = as_side(a, KernelSide), as_side(b, Side)
    add_device(rxe, 'rxe', 'rxe0', (rxe.address, rxe.ipv6))
    return rxe, roci


def into_one(a, b):
    """Moves the second host's end of the veth into this namespace. Both addresses are local then; routing sends packets between
    them over the veth all the same. IPv4 only."""
    link, here = f'{b.link}b', str(os.getpid())
    b.run('ip', 'link', 'set', b.link, 'down')
    b.run('ip', 'link', 'set', b.link, 'name', link, 'netns', here)
    run('ip', '-4', 'addr', 'flush', 'dev', a.link)
    b.link, b.prefix, b.pid = link, [], a.pid
    for host, peer in ((a, b), (b, a)):
        run('ip', 'addr', 'add', f'{host.address}/32', 'dev', host.link)
        run('ip', 'link', 'set', host.link, 'up')
        run('ip', 'route', 'add', peer.address, 'dev', host.link, 'src', host.address)
        run('ip', 'rule', 'add', 'pref', '10', 'iif', 'lo', 'to', peer.address, 'lookup', 'main')
        run('ip', 'rule', 'add', 'pref', '5', 'iif', host.link, 'lookup', 'local')
        for name, value in (('accept_local', 1), ('rp_filter', 0)):
            with open(f'/proc/sys/net/ipv4/conf/{host.link}/{name}', 'w') as f:
                f.write(str(value))
    if re.search('^0:', run('ip', 'rule'), re.MULTILINE):
        run('ip', 'rule', 'add', 'pref', '100', 'lookup', 'local')
        run('ip', 'rule', 'del', 'pref', '0')


def kernel_pair(kind, mtu=1500, hosts=None):
    """Two joined hosts with devices of this kind; `hosts`: two that are joined already."""
    load(kind)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # siw needs it even for root
    a, b = (as_side(host, KernelSide) for host in hosts or harness.veth_pair(mtu))
    into_one(a, b)
    for host in (a, b):
        add_device(host, kind, f'{kind}_{host.link}', [host.address])
    return a, b


def set_mtu(mtu, *hosts):
    for host in hosts:
        host.run('ip', 'link', 'set', host.link, 'mtu', str(mtu))


def transfer(server, client, argv, gid_option, ipv6=False, args=(), seconds=60, env=None):
    """A server that listens on a TCP port (-p) and its client, each with its device and the GID of its address."""
    def of(host):
        device = ['-d', host.device] if not argv[0].startswith('/') else []  # our own programs use the first device
        return [*device, gid_option, host.gid_index(host.ipv6 if ipv6 else host.address)]
    return harness.transfer(server, client, [*argv, *args], of(server), of(client), seconds=seconds, env=env)


def program(name):
    return os.path.join(PROGRAMS, name)


def option(name):
    """Whether the command line has this word, which is removed from it. The remaining words are filters of tap()."""
    given = name in sys.argv
    sys.argv = [a for a in sys.argv if a != name]
    return given
