"""The two hosts in a guest: `rxe`, the first network namespace with the kernel's Soft-RoCE, where programs run with the
system's libraries as they are; and `roci`, another namespace, where they run under `roci run`. A veth joins them."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'clients'))

import cm_server  # noqa: E402
import harness  # noqa: E402
from harness import Host, check, run, wait_until  # noqa: E402

PROGRAMS = os.environ.get('ROCI_INTEROP', HERE)  # where Meson builds the programs of this directory
MODULES = ['veth', 'sch_netem', 'crc32_generic', 'crc32_pclmul', 'rdma_rxe', 'ib_uverbs', 'rdma_ucm', 'ib_umad']
harness.SLOW = 3  # the guest's processor is software


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

    def connectable(self, process):
        """Whether a process listens through rdma_cm."""
        return cm_server.listens(process)

    def serve(self, *argv):
        """Starts a program that waits for connections through rdma_cm, and returns when it does."""
        server = self.start(*argv)
        wait_until(f'{argv[0]} to listen', lambda: self.connectable(server) or not server.running())
        return server


class Rxe(Side):
    device = 'rxe0'
    kind = 'rxe'
    plain = True

    def connectable(self, process):
        ids = json.loads(self.run('rdma', '-j', 'resource', 'show', 'cm_id') or '[]')
        return any(i.get('pid') == process.pid and i.get('state') == 'LISTEN' for i in ids)


def as_side(host, side):
    made = side(host.name, None, host.address)
    made.__dict__.update(host.__dict__)
    return made


def modprobe(*names):
    run('modprobe', '-a', *names)


def rxe_and_roci(mtu=1500):
    """(rxe, roci), joined."""
    modprobe(*MODULES)
    a, b = harness.veth_pair(mtu)
    rxe, roci = as_side(a, Rxe), as_side(b, Side)
    run('rdma', 'link', 'add', rxe.device, 'type', 'rxe', 'netdev', rxe.link)

    def gids():
        rxe.gids.clear()
        return all(a in rxe.call('ibv_devinfo', '-v') for a in (rxe.address, rxe.ipv6))
    wait_until('the GIDs of rxe0', gids)
    return rxe, roci


def set_mtu(mtu, *hosts):
    for host in hosts:
        host.run('ip', 'link', 'set', host.link, 'mtu', str(mtu))


def transfer(server, client, argv, gid_option, ipv6=False, args=(), seconds=60, excuse=None, env=None):
    """A server that listens on a TCP port (-p) and its client, each with its device and the GID of its address."""
    def of(host):
        device = ['-d', host.device] if not argv[0].startswith('/') else []  # ours take the first
        return [*device, gid_option, host.gid_index(host.ipv6 if ipv6 else host.address)]
    return harness.transfer(server, client, [*argv, *args], of(server), of(client), seconds=seconds, excuse=excuse, env=env)


def program(name):
    return os.path.join(PROGRAMS, name)
