# SPDX-License-Identifier: BSD-2-Clause
"""roci dump: agrees with Wireshark on every field of every capture in tests/captures; files of every kind; what it says of a
program's packets under loss; live captures."""
import glob
import ipaddress
import json
import os
import re
import signal
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET

from command_line import base, environment, here, roci, says
from harness import HERE, ROCI, SANITIZER, Failure, Skip, check, need, tap, wait_until
from made_capture import A, B, HEAD, T0, block, packet, record

CAPTURES = os.path.join(HERE, '..', 'captures')
BROKEN, USAGE = 1, 2


# ---- Wireshark ----

# Values that Wireshark derives, prints again in another form, or gives as a group of other fields: they are no fields of a packet.
DERIVED = re.compile(
    r'eth\..*(oui|resolved|\.lg|\.ig)|eth\.(addr|lg|ig|padding)|ip\.(addr|host|src_host|dst_host|checksum\.status|flags|dsfield)|'
    r'ipv6\.(addr|host|src_host|dst_host|tclass)|udp\.(port|stream|time_.*|payload|checksum\.(status|zero))|data(\.len)?|'
    r'infiniband\.(bth|deth|reth|aeth|atomiceth|atomicacketh|mad|mad\.data|smplid\.smpdata|cm\.req\.ip_cm|cm\.req\.serviceid\.(prefix|protocol|dport))|_ws\..*|')
# Reserved bits, which the standard tells receivers to ignore.
RESERVED = re.compile(r'.*reserved[0-9]*')
# Wireshark 4.0 applies masks of 32 bits to the 24 bits of a flow label, and to a byte that is not the packet rate's.
SHIFTED = re.compile(r'infiniband\.cm\.req\.(prim|alt)_(flowlabel|pktrate)')


def number(group, name, change=lambda value: value):
    def get(fields):
        value = fields[group][name]
        return change(int(value, 16) if isinstance(value, str) else int(value))
    return get


def text(group, name):
    return lambda fields: fields[group][name]


def private(begin=0):
    return lambda fields: fields['cm_private']['bytes'][2 * begin:]


def tree():
    """How each of Wireshark's fields is found among ours."""
    found = {
        'eth.dst': text('eth', 'dst'), 'eth.src': text('eth', 'src'), 'eth.type': number('eth', 'type'),
        'ip.version': number('ip', 'version'), 'ip.hdr_len': number('ip', 'header_length'), 'ip.len': number('ip', 'length'),
        'ip.dsfield.dscp': number('ip', 'traffic_class', lambda v: v >> 2), 'ip.dsfield.ecn': number('ip', 'traffic_class', lambda v: v & 3),
        'ip.id': number('ip', 'id'), 'ip.flags.rb': number('ip', 'reserved_flag'), 'ip.flags.df': number('ip', 'dont_fragment'),
        'ip.flags.mf': number('ip', 'more_fragments'), 'ip.frag_offset': number('ip', 'fragment_offset'), 'ip.ttl': number('ip', 'hop_limit'),
        'ip.proto': number('ip', 'protocol'), 'ip.checksum': number('ip', 'checksum'), 'ip.src': text('ip', 'src'), 'ip.dst': text('ip', 'dst'),
        'ipv6.version': number('ip', 'version'), 'ipv6.tclass.dscp': number('ip', 'traffic_class', lambda v: v >> 2),
        'ipv6.tclass.ecn': number('ip', 'traffic_class', lambda v: v & 3), 'ipv6.flow': number('ip', 'flow_label'), 'ipv6.plen': number('ip', 'length'),
        'ipv6.nxt': number('ip', 'protocol'), 'ipv6.hlim': number('ip', 'hop_limit'), 'ipv6.src': text('ip', 'src'), 'ipv6.dst': text('ip', 'dst'),
        'udp.srcport': number('udp', 'src_port'), 'udp.dstport': number('udp', 'dst_port'), 'udp.length': number('udp', 'length'),
        'udp.checksum': number('udp', 'checksum'), 'data.data': lambda f: f['payload']['bytes'] + '00' * f['bth']['pad'], 'infiniband.invariant.crc': number('icrc', 'value'),
        'infiniband.ieth': number('ieth', 'rkey'), 'infiniband.immdt': number('immdt', 'imm'),
        'infiniband.atomicacketh.origremdt': number('atomicacketh', 'original'),
        'infiniband.atomiceth.swapdt': number('atomiceth', 'swap_add'), 'infiniband.atomiceth.cmpdt': number('atomiceth', 'compare'),
        'infiniband.reth.va': lambda f: number('reth' if 'reth' in f else 'atomiceth', 'va')(f),
        'infiniband.reth.r_key': lambda f: number('reth' if 'reth' in f else 'atomiceth', 'rkey')(f),
        'infiniband.reth.dmalen': number('reth', 'dma_len'),
        'infiniband.deth.q_key': number('deth', 'qkey'), 'infiniband.deth.srcqp': number('deth', 'src_qpn'),
        'infiniband.aeth.syndrome': number('aeth', 'syndrome'), 'infiniband.aeth.msn': number('aeth', 'msn'),
        'infiniband.aeth.syndrome.opcode': number('aeth', 'syndrome', lambda v: v >> 5 & 3),
        'infiniband.cm.req.remoteqpneecn': number('cm', 'qpn'), # what it calls the QPN of a DREQ
    }
    for name in ('credit_count', 'error_code', 'timer'):
        found[f'infiniband.aeth.syndrome.{name}'] = number('aeth', 'syndrome', lambda v: v & 0x1f)
    for theirs, ours in {'opcode': 'opcode', 'se': 'solicited', 'm': 'mig_req', 'padcnt': 'pad', 'tver': 'version', 'p_key': 'pkey',
                         'destqp': 'dest_qpn', 'a': 'ack_req', 'psn': 'psn'}.items():
        found[f'infiniband.bth.{theirs}'] = number('bth', ours)
    for theirs, ours in {'baseversion': 'base_version', 'mgmtclass': 'class', 'classversion': 'class_version', 'method': 'method',
                         'status': 'status', 'classspecific': 'class_specific', 'transactionid': 'tid', 'attributeid': 'attribute',
                         'attributemodifier': 'modifier'}.items():
        found[f'infiniband.mad.{theirs}'] = number('mad', ours)
    for message in ('rej', 'rtu', 'dreq', 'drsp', 'rep', 'mra'):
        found[f'infiniband.cm.{message}.localcommid'] = number('cm', 'local_id')
        found[f'infiniband.cm.{message}.remotecommid'] = number('cm', 'remote_id')
        found[f'infiniband.cm.{message}.private'] = private()
    found['infiniband.cm.req'] = found['infiniband.cm.rep'] = number('cm', 'local_id')
    for theirs, ours in {'msgrej': 'about', 'rejinfolen': 'info_len', 'reason': 'reason'}.items():
        found[f'infiniband.cm.rej.{theirs}'] = number('cm', ours)
    found['infiniband.cm.rej.ari'] = text('cm', 'info')
    for theirs, ours in {'e2eflowctrl': 'flow_control', 'failoveracc': 'failover', 'initdepth': 'initiator_depth', 'localcaguid': 'ca_guid',
                         'localeecn': 'local_eecn', 'localqkey': 'qkey', 'localqpn': 'qpn', 'respres': 'responder_resources',
                         'rnrretrcount': 'rnr_retry_count', 'srq': 'srq', 'startpsn': 'starting_psn', 'tgtackdelay': 'target_ack_delay'}.items():
        found[f'infiniband.cm.rep.{theirs}'] = number('cm', ours)
    for theirs, ours in {'serviceid': 'service_id', 'localcaguid': 'ca_guid', 'localqkey': 'qkey', 'localqpn': 'qpn',
                         'responderres': 'responder_resources', 'localeecn': 'local_eecn', 'initdepth': 'initiator_depth',
                         'remoteeecn': 'remote_eecn', 'remoteresptout': 'remote_response_timeout', 'transpsvctype': 'transport',
                         'e2eflowctrl': 'flow_control', 'startpsn': 'starting_psn', 'localresptout': 'local_response_timeout',
                         'retrcount': 'retry_count', 'pkey': 'pkey', 'pppmtu': 'mtu', 'rdcexist': 'rdc', 'rnrretrcount': 'rnr_retry_count',
                         'maxcmretr': 'max_cm_retries', 'srq': 'srq', 'ext_transport': 'ext_transport'}.items():
        found[f'infiniband.cm.req.{theirs}'] = number('cm', ours)
    for prefix, group in (('prim', 'cm_primary'), ('alt', 'cm_alternate')):
        for theirs, ours in {'locallid': 'local_lid', 'remotelid': 'remote_lid', 'tfcclass': 'traffic_class', 'hoplim': 'hop_limit', 'sl': 'sl',
                             'subnetlocal': 'subnet_local', 'localacktout': 'ack_timeout'}.items():
            found[f'infiniband.cm.req.{prefix}_{theirs}'] = number(group, ours)
        for end in ('local', 'remote'):
            for form in ('gid', 'gid_ipv4'):
                found[f'infiniband.cm.req.{prefix}_{end}{form}'] = text(group, f'{end}_gid')
    for version in (4, 6):
        found[f'infiniband.cm.req.ip_cm.sip{version}'] = text('cm_ip', 'src')
        found[f'infiniband.cm.req.ip_cm.dip{version}'] = text('cm_ip', 'dst')
    found['infiniband.cm.req.ip_cm.sport'] = number('cm_ip', 'src_port')
    found['infiniband.cm.req.ip_cm.private'] = private(36)
    for name, at, low in (('majv', 0, 4), ('minv', 0, 0), ('ipv', 1, 4)):
        found[f'infiniband.cm.req.ip_cm.{name}'] = lambda f, at=at, low=low: bytes.fromhex(private()(f))[at] >> low & 15
    return found


OURS = tree()


def same(field, ours):
    """Whether a field of Wireshark's has our value."""
    value, show = field.get('value') or '', field.get('show') or ''
    if isinstance(ours, int):
        try:
            return int(show, 0) == ours
        except ValueError:
            return int(value, 16) == ours
    return ours in (show, value) or bytes_of(ours) == value


def bytes_of(address):
    try:
        return ipaddress.ip_address(address).packed.hex()
    except ValueError:
        return None


def wireshark(path):
    """The RoCEv2 packets of a capture: number, and (name, element) of each field."""
    need('tshark')
    done = subprocess.run(['tshark', '-r', path, '-Y', 'infiniband', '--disable-protocol', 'rpcordma', '--disable-protocol', 'infiniband.eoib',
                           '-T', 'pdml'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, env=dict(os.environ, HOME=base))
    check(done.returncode == 0, done.stderr.decode(errors='replace'))
    for packet in ET.fromstring(done.stdout):
        protos = {proto.get('name'): proto for proto in packet}
        number = int(protos['geninfo'].find("field[@name='num']").get('show'))
        yield number, [(field.get('name'), field) for name, proto in protos.items() if name not in ('geninfo', 'frame')
                       for field in proto.iter('field')]


def compare(path):
    ours = {p['number']: p for p in map(json.loads, roci('dump', '--json', path)[0].splitlines())}
    count = reserved = shifted = 0
    seen = set()
    for packet, fields in wireshark(path):
        check(packet in ours, f'packet {packet}: roci dump does not show it')
        mine = ours.pop(packet)['fields']
        for name, field in fields:
            if DERIVED.fullmatch(name) or RESERVED.fullmatch(name):
                reserved += bool(RESERVED.fullmatch(name))
                continue
            if SHIFTED.fullmatch(name):
                shifted += 1
                group = 'cm_primary' if 'prim' in name else 'cm_alternate'
                check('pktrate' in name or int(field.get('unmaskedvalue'), 16) >> 4 == mine[group]['flow_label'], f'packet {packet}: {name}')
                continue
            check(name in OURS, f'packet {packet}: nobody knows what {name} is here')
            value = OURS[name](mine)
            check(same(field, value), f'packet {packet}: {name} is {field.get("show")} ({field.get("value")}) for tshark and {value} for us')
            seen.add(name)
            count += 1
    left = [number for number, p in ours.items() if p['sort'] in ('roce', 'cm')]
    check(not left, f'tshark knows nothing of packets {left}')
    return count, seen, reserved, shifted


def agrees_on_all():
    total, kinds, more = 0, set(), [0, 0]
    paths = sorted(glob.glob(os.path.join(CAPTURES, '*.pcap*')))
    check(len(paths) >= 20, f'only {len(paths)} captures')
    for path in paths:
        try:
            count, seen, reserved, shifted = compare(path)
        except Failure as failure:
            raise Failure(f'{os.path.basename(path)}: {failure}') from None
        check(count, f'{path}: nothing was compared')
        total += count
        more = [more[0] + reserved, more[1] + shifted]
        kinds |= seen
    check(len(kinds) >= 100, f'only {len(kinds)} kinds of fields were compared')
    return (f'{total} fields of {len(kinds)} kinds in {len(paths)} captures agree with tshark; {more[0]} reserved ones and {more[1]} that tshark '
            f'reads at a wrong place were left out')


def icrcs_right():
    for path in sorted(glob.glob(os.path.join(CAPTURES, '*.pcap*'))):
        for packet in map(json.loads, roci('dump', '--json', path)[0].splitlines()):
            check(packet['icrc'] == 'right', f'{path} packet {packet["number"]}: ICRC {packet["icrc"]}')


# ---- what it says ----

def capture(name):
    return os.path.join(CAPTURES, name)


def lines_of(name, *options):
    return roci('dump', *options, capture(name))[0].splitlines()


def rnr_is_told():
    lines = lines_of('rxe-6.1-vt-rnr00.pcap')
    says('RNR NAK: no receive is posted for PSN 4096, send again in 655 ms', lines[3])
    says(r'SEND 2500 bytes, packet 1 of 3, sent again after RNR 655 ms \(waited 687 ms\)', lines[6])
    errors = lines_of('rxe-6.1-vt-rnr00.pcap', '--errors')
    check(0 < len(errors) < len(lines) and all(line in lines for line in errors), '\n'.join(errors))


def cm_is_told():
    lines = lines_of('rxe-6.1-cm-rej.pcap')
    says("CM REJ: rejects, reason 28: the far end's program rejected the connection", lines[1])
    says('CM REQ: connects to port 7471', lines[0])
    says('sent again', lines_of('rxe-6.1-cm-slow.pcap')[1])
    says('CM SIDR_REQ: asks for the QP of port 7174', lines_of('rxe-6.1-udaddy.pcap')[0])


def filters():
    name = 'rxe-6.1-rping2.pcap'
    everything = lines_of(name)
    check(all(line in everything for line in lines_of(name, '--op', 'read')), 'a filter changes lines')
    check(len(lines_of(name, '--op', 'read')) == 16, lines_of(name, '--op', 'read'))
    check(all(' CM ' in line for line in lines_of(name, '--op', 'cm')), lines_of(name, '--op', 'cm'))
    check(len(lines_of(name, '--qp', '0x11')) + len(lines_of(name, '--op', 'cm')) >= len(everything), 'QP')
    check(lines_of(name, '--qp', '17') == lines_of(name, '--qp', '0x11'), 'the QP number in decimal')
    check(lines_of(name, '--host', '10.9.0.1') == everything and not lines_of(name, '--host', '10.9.0.3'), 'host')
    check(len(lines_of(name, '--all')) > len(everything), '--all')


def verbose():
    out = '\n'.join(lines_of('rxe-6.1-cm-ok.pcap', '-v'))
    says(r'eth: dst 52:54:00:00:00:02 src', out)
    says(r'cm: local_id 0x1372b722 .* service_id 0x0000000001061d2f', out)
    says(r'icrc: value 0x1d31afaf \(right\)', out)


def stats():
    out = '\n'.join(lines_of('rxe-6.1-rping2.pcap', '--stats'))
    says(r'RC 10\.9\.0\.1 0x000011 <> 10\.9\.0\.2 0x000011', out)
    says(r'round trips: \d+: least [\d.]+ (us|ms), 50% ', out)
    says(r'(?m)0x\w+: 1 packet, 0 messages, 0 B, 1 NAK$', '\n'.join(lines_of('rxe-6.1-vt-badrkey.pcap', '--stats')))
    says(r'(?m)^  fd00:9::2 0x000012: 2 packets, 1 message, 0 B, 1 acknowledgement$', '\n'.join(lines_of('rxe-6.1-rping6.pcap', '--stats')))
    talks = [json.loads(line) for line in lines_of('rxe-6.1-vt-rnr00.pcap', '--stats', '--json')]
    check(talks[0]['ends'][1]['rnrs'] == 2 and talks[0]['ends'][0]['sent_again'] == 4, talks)


# ---- files ----

def scratch(name, content):
    path = os.path.join(base, name)
    with open(path, 'wb') as file:
        file.write(content)
    return path


def content(name):
    with open(capture(name), 'rb') as file:
        return file.read()


def errors_help():
    says('no capture is given', roci('dump', status=USAGE)[1])
    says('No such file', roci('dump', '/nowhere', status=USAGE)[1])
    says('is not a QP number', roci('dump', '--qp', 'x', '-', status=USAGE)[1])
    says('captures hold no names', roci('dump', '--host', 'localhost', '-', status=USAGE)[1])
    says('it is empty', roci('dump', scratch('empty', b''), status=BROKEN)[1])
    says('neither a pcap nor a pcapng', roci('dump', scratch('text', b'hello, world'), status=BROKEN)[1])
    check(roci('dump', scratch('text', b'hello, world'), status=BROKEN)[1].count('\n') == 1, 'one line is enough')
    says(f'{base}: it is a directory; name a capture in it\n', roci('dump', base, status=BROKEN)[1])
    says('did the program use roci0', roci('dump', '--run', '--', 'true')[1])
    for option in (['--errors'], ['--qp', '0x99'], ['--op', 'flush'], ['--host', '10.9.0.9']):
        out, err = roci('dump', *option, capture('rxe-6.1-rping2.pcap'))
        check(not out and err.endswith('rxe-6.1-rping2.pcap matches the options\n') and err.count('\n') == 1, f'{option}: {out}\n{err}')
    says('^roci dump: --all also shows 2 packets of other protocols\n$', roci('dump', capture('rxe-6.1-rping2.pcap'))[1])
    says('zcat', roci('dump', scratch('gz', b'\x1f\x8b\x08\0\0\0'), status=BROKEN)[1])


def cut_off():
    whole = content('rxe-6.1-rping2.pcap')
    lines = lines_of('rxe-6.1-rping2.pcap')
    out, err = roci('dump', scratch('cut', whole[:-10]), status=BROKEN)
    check(out.splitlines() == lines[:-1], 'what is good is not printed')
    says(f'the file is cut off at byte {len(whole) - 10}', err)


def from_pipe():
    name = 'rxe-6.1-rping2.pcap'
    check(roci('dump', '-', stdin=content(name))[0].splitlines() == lines_of(name), 'a pipe is read differently')


def constant_memory():
    """Packets between ever new QPs take no more memory than a few."""
    if SANITIZER:
        raise Skip('a sanitizer has memory of its own')

    def peak(path):
        out = os.path.join(base, 'time')
        roci('dump', '--op', 'cnp', path, prefix=('/usr/bin/env', 'python3', '-c', 'import resource, subprocess, sys\n'
             'status = subprocess.call(sys.argv[2:], stdout=subprocess.DEVNULL)\n'
             'open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\nsys.exit(status)', out))
        with open(out) as file:
            return int(file.read())

    def packets(count):
        yield struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101)
        for i in range(count):
            ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 44, 0, 0x4000, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
            bth = struct.pack('>BBHII', 4, 0, 0xffff, i & 0xffffff, i * 7 & 0xffffff)
            yield struct.pack('<IIII', i, 0, 44, 44) + ip + struct.pack('>HHHH', 50000, 4791, 24, 0) + bth + bytes(4)

    small = peak(scratch('small', b''.join(packets(5000))))
    large = peak(scratch('large', b''.join(packets(50000))))
    check(large < small * 1.1 + 2000, f'{small} KiB for 5,000 packets, {large} KiB for 50,000')
    return f'{small} KiB and {large} KiB'


# ---- records ----

def recorded():
    """Two receives, a connected QP whose packet nobody answers, a completion, and one that failed; a name that is no text."""
    return scratch('recorded', HEAD + record(1, T0, 7, 'a\x1b[2Jb') + record(3, T0 + 1000, 7, qpn=0x11, wr_id=1, length=4096)
                   + record(3, T0 + 2000, 7, qpn=0x11, wr_id=2, length=4096) + record(6, T0 + 3000, 7, qpn=0x11, peer=0x22, status=2, length=1024, local=A, remote=B)
                   + record(2, T0 + 4000, 7, qpn=0x11, peer=0x22, wr_id=9, opcode=2, length=8, flags=2, local=A, remote=B)
                   + packet(T0 + 5000, A, B, 4, 0x22, 100, b'hello!!!', pid=7) + record(5, T0 + 6000, 7, qpn=0x11, peer=0x22, wr_id=9, length=8)
                   + record(5, T0 + 7000, 7, qpn=0x11, peer=0x22, wr_id=10, opcode=2, status=10) + block(0x80000001, b'of another program')
                   + block(0xbad, struct.pack('<I', 32473) + b'custom'))


def records_are_told():
    path = recorded()
    lines = roci('dump', path)[0].splitlines()
    told = ['process +a\\\\x1b\\[2Jb begins', 'post receive +4096  2 receives of 4 KiB, wr_id 1 to 2',
            'QP state +RTR, connected to 0x000022, path MTU 1024', 'post send +8  SEND 8 bytes, wr_id 9$',
            r'1 +0.000005 .*10\.0\.0\.1 0x000011 > 10\.0\.0\.2 0x000022 .*SEND 8 bytes', 'completion +8  SEND is done, 8 bytes, wr_id 9',
            'completion +READ failed, wr_id 10: IBV_WC_REM_ACCESS_ERR .10.: the peer refused']
    check(len(lines) == len(told), '\n'.join(lines))
    for pattern, line in zip(told, lines):
        says(pattern, line)
    check(all(' pid 7' in line for line in lines[:4]), '\n'.join(lines))
    check(not re.search('[\x00-\x09\x0b-\x1f]', '\n'.join(lines)), 'control characters reach the terminal')
    for options, left in ([['--packets'], [4]], [['--errors'], [6]], [['--op', 'read'], [6]], [['--op', 'send'], [1, 3, 4, 5]],
                           [['--qp', '0x22'], [2, 3, 4, 5, 6]], [['--op', 'cm'], []]):
        got = roci('dump', *options, path)[0].splitlines()
        check(got == [lines[i] for i in left], f'{options}: {got}')
    says('wr_id 0x0000000000000009', roci('dump', '-v', path)[0])
    every = roci('dump', '--all', path)[0]
    says('block of type 0x80000001 +20  for local use', every)
    says('custom block +8  of private enterprise number 32473', every)


def records_in_json():
    objects = [json.loads(line) for line in roci('dump', '--json', recorded())[0].splitlines()]
    records = [o for o in objects if o['sort'] == 'record']
    check([o['record'] for o in records] == ['process', 'post_recv', 'post_recv', 'qp_state', 'post_send', 'completion', 'completion'], objects)
    check([o['error'] for o in records] == [False] * 6 + [True], records)
    check(records[0]['program'] == 'a\x1b[2Jb', records[0])
    check(records[-1]['fields']['record'] == {'pid': 7, 'qp_type': 2, 'opcode': 2, 'status': 10, 'flags': 0, 'qpn': 0x11, 'peer': 0x22, 'cq': 1,
                                              'wr_id': '0x000000000000000a', 'length': 0, 'imm': 0}, records[-1])


def full_output():
    """Where the output cannot be written, no more is read: then nothing is said of the content."""
    path = scratch('records first', HEAD + b''.join(record(3, T0, 7, qpn=0x11 + n) for n in range(100)) + packet(T0, A, B, 4, 0x22, 100, b'hello!!!'))
    with open('/dev/full', 'w') as full:
        done = subprocess.run([ROCI, 'dump', '--json', path], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    check(done.returncode == 1 and done.stderr == 'roci: not all of the output could be written\n', done.stderr)


# ---- live ----

def live():
    out, err = roci('dump', '--run', '--', ROCI, 'ping', '--loopback', '--device', 'auto', '--count', '2', '--size', '5000')
    says(r'CM REQ: connects to port', out)
    says(r'SEND 5000 bytes, packet 2 of 2', out)
    says(r'acknowledges up to PSN \d+, round trip', out)
    says('2 operations, 0 failed', err)
    check('2 operations' not in out, 'the output of the program is among the packets')
    says('post send .* SEND 5000 bytes', out)
    says('completion .* receive is done, 5000 bytes', out)
    objects = [json.loads(line) for line in roci('dump', '--json', '--run', '--', ROCI, 'ping', '--loopback', '--device', 'auto', '--count', '2')[0].splitlines()]
    packets = [o for o in objects if o['sort'] != 'record']
    check({p['direction'] for p in packets} == {'in', 'out'} and all(p['icrc'] == 'right' for p in packets), packets)
    check(any(p.get('left_in') for p in packets if p['direction'] == 'in'), 'no packet is recognized when it arrives')


def live_status():
    roci('dump', '--run', '--', 'sh', '-c', 'exit 7', status=7)
    says('program not found', roci('dump', '--run', '--', '/nowhere', status=127)[1])
    says('no program is given', roci('dump', '--run', status=USAGE)[1])


def to_stdout():
    taken = subprocess.run([ROCI, 'run', '--capture', '-', '--', ROCI, 'ping', '--loopback', '--device', 'auto', '--count', '2'],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **environment()), timeout=60)
    check(taken.returncode == 0, taken.stderr.decode())
    says('2 operations, 0 failed', taken.stderr.decode())
    says('SEND 64 bytes', roci('dump', '-', stdin=taken.stdout)[0])


def of_running_program():
    program = here.start(ROCI, 'ping', '--loopback', '--device', 'auto', '--count', '40', '--interval', '100ms', plain=True,
                         env=dict(environment(), ROCI_PATH='wire'))
    wait_until('the program to ping', lambda: 'seq=2' in program.text() or not program.running())
    check(program.running(), program.report())
    # One that is killed does the program no harm; neither does the one that takes its place.
    first = here.start(ROCI, 'dump', '--pid', str(program.pid), plain=True, env=environment())
    wait_until('packets', lambda: 'SEND 64 bytes' in first.text())
    first.end()
    out, err = roci('dump', '--json', '--pid', str(program.pid))
    packets = [o for o in map(json.loads, out.splitlines()) if o['sort'] != 'record']
    check({p['direction'] for p in packets} == {'in', 'out'} and all(p['icrc'] == 'right' for p in packets), 'both directions, intact')
    says('CM DREQ', '\n'.join(p['meaning'] for p in packets))
    says(f'waiting for packets of process {program.pid} ', err)
    check(program.wait(20) == 0, program.report())
    says('40 operations, 0 failed', program.text())


def stopped():
    program = here.start(ROCI, 'ping', '--loopback', '--device', 'auto', '--count', '100', '--interval', '100ms', plain=True,
                         env=dict(environment(), ROCI_PATH='wire'))
    wait_until('the program to ping', lambda: 'seq=2' in program.text() or not program.running())
    dump = here.start(ROCI, 'dump', '--pid', str(program.pid), plain=True, env=environment())
    wait_until('packets', lambda: 'SEND 64 bytes' in dump.text())
    dump.popen.send_signal(signal.SIGINT)
    check(dump.wait(10) == 0, dump.report())
    check(program.running(), program.report())
    program.end()


def watch_ping(pid):
    """What `roci dump` says of the packets of a ping from now to its end, but those of the connection manager."""
    out, err = roci('dump', '--json', '--pid', str(pid))
    says('`roci run --path wire` keeps a program on the wire', err)
    return [p for p in map(json.loads, out.splitlines()) if p['sort'] == 'roce']


def of_local_path():
    """There are no packets, so they are made up, and say so; also for what the short cut would have copied without the engine."""
    program = here.start(ROCI, 'ping', '--loopback', '--device', 'auto', '--op', 'read', '--size', '100000', '--count', '30', '--interval', '100ms',
                         plain=True, env=environment())
    wait_until('the program to ping', lambda: 'seq=2' in program.text() or not program.running())
    packets = watch_ping(program.pid)
    check(packets and all(p['made_up'] and p['comments'][0].startswith('made up: ') for p in packets), packets[:3])
    check({(p['direction'], p['opcode']) for p in packets} >= {(d, f'RC RDMA READ {o}') for d in ('in', 'out') for o in ('Request', 'response Only')}, packets[:4])
    check(not any(set(p['flags']) - {'cut', 'probe'} for p in packets), [p['flags'] for p in packets])  # a busy machine is asked whether it is there
    check(program.wait(20) == 0, program.report())
    says('30 operations, 0 failed', program.text())


def of_one_end():
    """Only the target is watched: its peer's WRITEs go through the ring then, and are seen."""
    server = here.start(ROCI, 'serve', '--device', 'auto', plain=True, env=environment())
    wait_until('the server to listen', lambda: 'listening' in server.text() or not server.running())
    program = here.start(ROCI, 'ping', '--device', 'auto', '--op', 'write', '--size', '9000', '--count', '30', '--interval', '100ms', here.address, plain=True,
                         env=environment())
    wait_until('the program to ping', lambda: 'seq=2' in program.text() or not program.running())
    dump = here.start(ROCI, 'dump', '--op', 'write', '--pid', str(server.pid), plain=True, env=environment())
    wait_until('WRITEs', lambda: 'WRITE 9000 bytes, 28 of 9032 bytes captured, made up (local path)' in dump.text())
    dump.popen.send_signal(signal.SIGINT)
    check(dump.wait(10) == 0, dump.report())
    check(program.wait(20) == 0, program.report())
    server.end()


def stopped_with_stats():
    """^C ends the capture, and what was seen is summed up."""
    program = here.start(ROCI, 'ping', '--loopback', '--device', 'auto', '--count', '200', '--interval', '50ms', plain=True,
                         env=dict(environment(), ROCI_PATH='wire'))
    wait_until('the program to ping', lambda: 'seq=2' in program.text() or not program.running())
    path = os.path.join(base, 'watched')
    with open(path, 'wb') as out:
        dump = subprocess.Popen([ROCI, 'dump', '--stats', '--json', '--pid', str(program.pid)], stdout=out, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, **environment()))
    told = dump.stderr.readline()
    check(f'waiting for packets of process {program.pid}' in told, told)
    heard = lambda: int(re.search(r'seq=(\d+)', program.text().splitlines()[-1] if 'seq=' in program.text() else '')[1])
    first = heard()
    wait_until('more operations', lambda: heard() > first + 5 or not program.running())
    dump.send_signal(signal.SIGINT)
    check(dump.wait(20) == 0, f'exit status {dump.returncode}\n{dump.stderr.read()}')
    check(program.running(), program.report())
    program.end()
    with open(path) as file:
        talks = [json.loads(line) for line in file]
    check(talks and sum(end['messages'] for talk in talks for end in talk['ends']) > 0, talks)


def not_ours():
    says('has not opened roci0', roci('dump', '--pid', str(os.getpid()), status=USAGE)[1])
    says('there is no process 999999', roci('dump', '--pid', '999999', status=USAGE)[1])
    says('give one of them', roci('dump', '--pid', '1', 'file', status=USAGE)[1])


def cases():
    yield 'all captures agree with tshark on every field', agrees_on_all
    yield 'every ICRC is right', icrcs_right
    yield 'an RNR NAK and what follows are told', rnr_is_told
    yield 'messages of CM are told', cm_is_told
    yield 'filters', filters
    yield 'every field with -v', verbose
    yield 'conversations', stats
    yield 'errors say what to do', errors_help
    yield 'a file that is cut off', cut_off
    yield 'a pipe', from_pipe
    yield 'posts, completions and states are told', records_are_told
    yield 'posts, completions and states in JSON', records_in_json
    yield 'output that cannot be written', full_output
    yield 'a program while it runs', live
    yield 'its exit status', live_status
    yield 'roci run --capture -', to_stdout
    yield 'a program that runs already', of_running_program
    yield '^C ends in good order', stopped
    yield 'a program on the local path', of_local_path
    yield 'one of two programs on the local path', of_one_end
    yield '^C sums up what was seen', stopped_with_stats
    yield 'processes without packets for us', not_ours
    yield 'memory does not grow with the file', constant_memory


if __name__ == '__main__':
    sys.exit(tap(cases()))
