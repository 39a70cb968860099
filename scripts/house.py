#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""house.py [--list N] BUILD: prints figures about the sources, and fails when a rule of the house is broken.

Figures: the longest functions and files. Rules: includes point one way, each global symbol of the product is used by another
object file of it, no text refers to a document outside the repository, and each source file has an SPDX line. BUILD is a
directory where Meson has built everything. --list says how many of the longest to print (default: 10).
"""
import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONG_FUNCTION, LONG_FILE = 50, 500

# The rooms that each room may include, besides itself. The mover and roci see only the public verbs headers of the system.
ROOMS = {
    'wire': (),
    'engine': ('wire',),
    'cm': ('wire', 'engine'),
    'device': ('wire', 'engine', 'cm'),
    'verbs': ('wire', 'engine', 'cm', 'device'),
    'rdmacm': ('wire', 'engine', 'cm', 'device', 'verbs'),
    'rsocket': ('wire', 'engine', 'cm', 'device', 'verbs', 'rdmacm'),
    'explain': (),
    'capture': ('wire', 'explain'),
    'ladder': ('wire', 'explain', 'capture'),
    'mover': ('wire', 'explain'),
    'tour': ('wire',),
    'perf': ('wire', 'tour'),
    'plot': (),
    'roci': ('wire', 'mover', 'tour', 'perf', 'plot', 'explain', 'capture', 'ladder'),
}
# Files that need nothing of their room. `roci` compiles some in: `run` checks its options as the device will,
# `stats` reads what the device counts. The tour and perf read and write fields as the mover does; the tour uses FLUSH with
# headers that lack it. Captures hold messages of connection management.
SHARED = {'roci': ('device/fault_plan.h', 'device/pcapng.h', 'device/stats_file.h', 'device/port_holder.h', 'device/rundir.h'), 'tour': ('mover/cursor.h', 'verbs/flush.h'),
          'capture': ('cm/msg.h', 'cm/cm_ip.h'), 'perf': ('mover/cursor.h',)}
# Global symbols that only tests use, and what for.
FOR_TESTS = {
    'hdr_decode': 'tests read what other implementations wrote',
    'roci_packet_print': 'traces are printed with it, so far by the simulator',
    'mover_beneath_without_openat2': 'a test goes the way of kernels that lack openat2()',
    'roci_cm_rx': 'a message that crossed no NAT: the tests have few others',
    'chunk_cipher_init_openssl': 'a test compares both implementations of the cipher',
    'chunk_cipher_is_wide': 'the same test says which one it had',
    'mover_secure_tls': 'a hostile peer breaks TLS from inside',
    'roci_udp_port_for': 'a test draws each port that there is',
    'roci_sweep_file': 'a test puts another file in the place of one that has been opened',
}
SPDX = 'SPDX-License-Identifier: BSD-2-Clause'
SPDX_KINDS = re.compile(r'\.(c|h|py|sh|map)$|(^|/)(meson\.build|meson_options\.txt|Makefile|\.clang-format|\.clang-tidy)$|^\.ci/')
# Clauses of documents that the repository does not have.
ELSEWHERE = re.compile(r'\(D\d+\)|\bDESIGN\b|\bSTYLE\.md\b|/work/|\bissue #?\d+')
DOCUMENT = re.compile(r'[\w./-]*\w\.md\b')


def tracked():
    """The files of the repository; without Git, those that lie here."""
    done = subprocess.run(['git', 'ls-files'], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode == 0:
        return [name for name in done.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, name))]
    return [os.path.relpath(os.path.join(directory, name), ROOT) for directory, below, names in os.walk(ROOT)
            if not os.path.relpath(directory, ROOT).startswith(('build', '.git')) for name in names]


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8', errors='replace') as file:
        return file.read()


def room_of(name):
    """'engine' of src/engine/qp.c, 'roci' of roci/main.c; None of what belongs to no room."""
    parts = name.split('/')
    return parts[1] if parts[0] == 'src' and len(parts) > 2 else 'roci' if parts[0] == 'roci' else None


def functions(name, text):
    """(lines, 'file:line name') of each function. clang-format puts only the braces of functions alone at the left edge."""
    lines = text.splitlines()
    begin = None
    for number, line in enumerate(lines):
        if line == '{':
            begin = number
            while begin > 0 and lines[begin - 1] and not lines[begin - 1].endswith((';', '}', '*/')) \
                    and not lines[begin - 1].startswith('#'):
                begin -= 1
        elif line == '}' and begin is not None:
            found = re.search(r'(\w+)\(', ' '.join(lines[begin:number]))
            yield number - begin + 1, f'{name}:{begin + 1} {found[1] if found else "?"}'
            begin = None


def upward_includes(sources):
    for name, text in sources.items():
        room = room_of(name)
        if not room:
            continue
        allowed = (room, *ROOMS.get(room, ()))
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"(?:\.\./)*(?:src/)?((\w+)/[^"]+)', line)
            if found and found[2] in ROOMS and found[2] not in allowed and found[1] not in SHARED.get(room, ()):
                yield f'{name}:{number} {line.strip()}'
        if room not in ROOMS:
            yield f'{name}: no rule says what the room "{room}" may include'


def exported(build):
    """The names that the product's libraries give to other people's programs, and main."""
    names = {'main'}
    for directory, _, files in os.walk(os.path.join(build, 'src')):
        for library in (os.path.join(directory, name) for name in files if re.search(r'\.so\.\d+$', name)):
            for _, symbol, *_ in nm('-D', '--defined-only', library):
                name, _, version = symbol.partition('@')
                if 'ROCI_PRIVATE' not in version: # which is for our own other library
                    names.add(name)
    return names


def product_objects(build):
    """The object files of src/ and roci/, as Meson's compile commands name them. Tests compile some sources again."""
    with open(os.path.join(build, 'compile_commands.json')) as file:
        commands = json.load(file)
    objects = [os.path.join(build, entry['output']) for entry in commands
               if re.match(r'(src|roci)/', entry['output'])]
    missing = [name for name in objects if not os.path.exists(name)]
    if not objects or missing:
        sys.exit(f'house.py: {build} is not built: {" ".join(missing[:3])}')
    return objects


def nm(*args):
    """(file, symbol, kind, value) of each line of nm's portable format; one nm reads all the files, since to start it costs more."""
    file = args[-1]
    for line in subprocess.run(['nm', '-P', *args], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        fields = line.split()
        if line.endswith(':'): # what follows is of this file
            file = line[:-1]
        elif len(fields) > 1:
            yield file, fields[0], fields[1], fields[2] if len(fields) > 2 else ''


def unused_symbols(build):
    """Global symbols that no other object file of the product uses: they are dead, only tests use them, or they should be
    static. A symbol that is exported under another name is used."""
    public = exported(build)
    definers, users, used_addresses, addresses = {}, {}, set(), {}
    for path, versioned, kind, value in nm(*product_objects(build)):
        symbol = versioned.partition('@')[0]
        if kind == 'U':
            users.setdefault(symbol, set()).add(path)
        elif kind in 'TDBRVWC':
            definers.setdefault(symbol, set()).add(path)
            addresses[path, symbol] = kind, value
            if symbol in public and '@' in versioned:
                used_addresses.add((path, kind, value))
    unused = []
    for symbol, paths in sorted(definers.items()):
        exported_as_well = any((path, *addresses[path, symbol]) in used_addresses for path in paths)
        if symbol not in public and not exported_as_well and not users.get(symbol, set()) - paths:
            unused.append(symbol)
            if symbol not in FOR_TESTS:
                yield f'{symbol} ({", ".join(sorted(os.path.relpath(path, build) for path in paths))})'
    for symbol in FOR_TESTS.keys() - set(unused):
        yield f'{symbol}: FOR_TESTS need not name it'


def references_elsewhere(names):
    here = set(names)
    for name in names:
        if name.startswith('tests/captures/') and name.endswith('.pcap') or name == 'scripts/house.py':
            continue
        for number, line in enumerate(read(name).splitlines(), 1):
            if ELSEWHERE.search(line):
                yield f'{name}:{number} {line.strip()}'
            for document in DOCUMENT.findall(line):
                beside = os.path.normpath(os.path.join(os.path.dirname(name), document))
                if '://' not in line and not {document, beside} & here:
                    yield f'{name}:{number} {line.strip()}'


def without_spdx(names):
    for name in names:
        if SPDX_KINDS.search(name) or read(name).startswith('#!'):
            if SPDX not in '\n'.join(read(name).splitlines()[:3]):
                yield name


def print_longest(what, limit, found, count):
    over = [entry for entry in found if entry[0] > limit]
    print(f'{what}: {len(found)}, over {limit} lines: {len(over)}')
    for lines, name in sorted(found, reverse=True)[:count]:
        print(f'    {lines:4} {name}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--list', type=int, default=10)
    parser.add_argument('build')
    args = parser.parse_args()
    names = tracked()
    sources = {name: read(name) for name in names if name.endswith(('.c', '.h')) and room_of(name)}
    print_longest('functions of src/ and roci/', LONG_FUNCTION,
                  [function for name, text in sources.items() for function in functions(name, text)], args.list)
    print_longest('files of src/ and roci/', LONG_FILE,
                  [(len(text.splitlines()), name) for name, text in sources.items()], args.list)
    broken = 0
    for what, found in {
            'upward includes': upward_includes(sources),
            'unused symbols': unused_symbols(args.build),
            'references to other texts': references_elsewhere(names),
            'files without an SPDX line': without_spdx(names)}.items():
        found = list(found)
        broken += len(found)
        print(f'{what}: {len(found) or "none"}')
        for line in found:
            print(f'    {line}')
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
