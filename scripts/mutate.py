#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutate.py [--file FILE] [--sample N [--seed S]] [--jobs N] [--dir DIR] [--limit SECONDS] [--list] [--verbose]

Changes one thing in a source file, builds, and runs tests: they must notice. Each comparison is flipped and moved by one,
each number is one more and one less, && and || are exchanged, each check (an `if` that returns, leaves or goes) is
removed, and each other condition is negated. A change that leaves the machine code as it was is no change.

What is not noticed survives. The known survivors stand in tests/mutants.txt, each with the reason why nothing can notice
it. Any other survivor makes the exit status 1: a test is missing.

The sources are copied into DIR (default: build-mutate) and built there. --sample tries N changes of one file only, chosen by --seed
(default: a new one, which is printed). --file (may come several times) takes these files instead of all. --limit begins no change after so many
seconds. --list prints the changes. --verbose prints each result.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import queue
import random
import re
import resource
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KNOWN = os.path.join(ROOT, 'tests', 'mutants.txt')

# The files, the suite of unit tests that is about them (or some tests of it), and slices of a simulator.
ENGINE = ('engine', None, [['sim', '1', '60'], ['sim', '61', '300'], ['sim', '1', '150', '--rings'], ['sim', '--named'],
                           ['sim', '1', '300', '--attack']])
FILES = {
    'src/engine/responder.c': ENGINE,
    'src/engine/completer.c': ENGINE,
    'src/engine/mr.c': ENGINE,
    'src/cm/conn_rx.c': ('cm', None, [['sim_cm', '1', '1500']]),
    'src/mover/beneath.c': ('mover', {'mover_beneath', 'mover_tree', 'mover_walk'}, []),
    'src/mover/proto.c': ('mover', {'mover_proto', 'mover_proto_bounds', 'mover_terms'}, []),
}
# Not run: the first two need the network, and the last wraps a function of static libraries.
SKIP = {'cm_host', 'cm_ports', 'engine_nat_memory'}
NEEDS_BASE = 3  # seconds of CPU that a test may use, and SLOWER times what it needs unchanged
SLOWER = 10

# ---- the changes ----

TOKEN = re.compile(r'''
    (?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|\\\n)
  | (?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+)(?P<suffix>[uUlL]*)\b)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<op><<=|>>=|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]\#])
''', re.X | re.S)
FLIPS = {'<': ('<=', '>='), '<=': ('<', '>'), '>': ('>=', '<='), '>=': ('>', '<'), '==': ('!=',), '!=': ('==',),
         '&&': ('||',), '||': ('&&',)}
LEAVES = ('return', 'goto', 'continue', 'break')
ALLOCATES = ('calloc', 'malloc', 'realloc')

Token = collections.namedtuple('Token', 'kind text start end')
Mutant = collections.namedtuple('Mutant', 'path line function start end text what')


def tokens(source):
    result = []
    directives = [(m.start(), m.end()) for m in re.finditer(r'^#(?:[^\n]*\\\n)*[^\n]*', source, re.M)]
    for m in TOKEN.finditer(source):
        if m.lastgroup == 'skip':
            continue
        inside = next((source[a:a + 7] for a, b in directives if a <= m.start() < b), None)
        if inside and (inside != '#define' or m.group('number') is None):
            continue
        kind = 'number' if m.group('number') else m.lastgroup
        result.append(Token(kind, m.group(), m.start(), m.end()))
    return result


def close_of(toks, i):
    """The index of the bracket that closes the one at i."""
    pairs = {'(': ')', '{': '}', '[': ']'}
    depth, opening, closing = 0, toks[i].text, pairs[toks[i].text]
    for j in range(i, len(toks)):
        depth += (toks[j].text == opening) - (toks[j].text == closing)
        if depth == 0:
            return j
    raise ValueError('unbalanced brackets')


def leaves(toks, i):
    """Whether the statement at i ends with return, goto, continue or break."""
    if toks[i].text in LEAVES:
        return True
    if toks[i].text != '{':
        return False
    end, begin, j = close_of(toks, i), i + 1, i + 1
    while j < end:  # the last statement of the block
        if toks[j].text in '({[':
            j = close_of(toks, j)
        if toks[j].text in ';}' and j + 1 < end:
            begin = j + 1
        j += 1
    return toks[begin].text in LEAVES


def of_ifs(source, toks):
    for i, t in enumerate(toks):
        if t.text not in ('if', 'while') or toks[i + 1].text != '(':
            continue
        end = close_of(toks, i + 1)
        first, last = toks[i + 2].start, toks[end - 1].end
        inner = source[first:last]
        if t.text == 'if' and leaves(toks, end + 1):
            yield first, last, '(%s) && 0' % inner, 'check removed'
        if not any(x.text in FLIPS for x in toks[i + 2:end]):
            yield first, last, '!(%s)' % inner, 'negated'


def of_numbers(toks):
    depth, allocates = 0, -1
    for i, t in enumerate(toks):
        if t.text in ALLOCATES:
            allocates = depth
        depth += t.text in ('(', '{', '[')
        depth -= t.text in (')', '}', ']')
        if depth <= allocates and t.text == ';':
            allocates = -1
        if t.kind != 'number' or allocates >= 0:
            continue
        if toks[i - 1].text == '{' and t.text == '0' and toks[i + 1].text == '}':
            continue  # {0}
        suffix = re.search('[uUlL]*$', t.text).group()
        digits = t.text[:len(t.text) - len(suffix)]
        value = int(digits, 8 if re.fullmatch('0[0-7]+', digits) else 0)
        yield t.start, t.end, '%d%s' % (value + 1, suffix), 'one more'
        if value:
            yield t.start, t.end, '%d%s' % (value - 1, suffix), 'one less'


def of_operators(toks):
    for t in toks:
        for text in FLIPS.get(t.text, ()) if t.kind == 'op' else ():
            yield t.start, t.end, text, 'flipped'


def functions(source):
    """[(offset, name)] of the functions, in order."""
    return [(m.start(), m.group(1)) for m in re.finditer(r'^[a-z][^;={}()\n]*?\b(\w+)\((?:[^;{}])*?\)\s*\{', source, re.M)]


def mutants_of(path, source):
    toks = tokens(source)
    known = functions(source)
    seen = set()
    for start, end, text, what in sorted([*of_ifs(source, toks), *of_numbers(toks), *of_operators(toks)]):
        if (start, end, text) in seen:
            continue
        seen.add((start, end, text))
        name = next((n for at, n in reversed(known) if at <= start), '-')
        if start > 0 and source.rfind('\n#', 0, start) >= source.rfind('\n', 0, start):
            name = '-'  # a #define
        yield Mutant(path, source.count('\n', 0, start) + 1, name, start, end, text, what)


def changed(source, m):
    return source[:m.start] + m.text + source[m.end:]


def key(source, m):
    """What a mutant is called in tests/mutants.txt: the file, the function and the changed line, whatever its number."""
    begin = source.rfind('\n', 0, m.start) + 1
    end = source.find('\n', m.end)
    line = source[begin:m.start] + m.text + source[m.end:end]
    return (m.path, m.function, ' '.join(line.split()))


def read_known():
    """{key: reason} of tests/mutants.txt: FILE FUNCTION; the changed line, indented; why, indented, after #."""
    result, where, line = {}, None, None
    if not os.path.exists(KNOWN):
        return result
    for text in open(KNOWN, encoding='utf-8'):
        text = text.rstrip('\n')
        if not text.strip() or text.startswith('#'):
            continue
        if not text[0].isspace():
            where = tuple(text.split())
        elif text.lstrip().startswith('# '):
            result[(*where, line)] = text.strip()[2:]
        else:
            line = ' '.join(text.split())
    return result


# ---- building and running ----

# The libraries that are changed are shared ones here: then one compilation and one link make a change.
EDITS = {
    'meson.build': (("'-fvisibility=hidden', ", "'-fno-semantic-interposition', "),),
    **{'src/%s/meson.build' % room: ((' static_library(', ' shared_library('), (', pic : true', '')) for room in ('engine', 'cm', 'mover')},
}


class Workshop:
    """A copy of the sources and what is built of it."""

    def __init__(self, directory):
        self.source = os.path.join(directory, 'source')
        self.build = os.path.join(directory, 'build')
        self.originals = {}  # path: hash of its object
        self.commands = {}   # path: its object, the command that compiles it, the one that links it
        self.dirty = None    # the path whose object is changed
        self.copy()

    def copy(self):
        listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                                check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split('\0')):
            here = os.path.join(ROOT, name)
            if os.path.isfile(here):
                with open(here, 'rb') as f:
                    content = f.read()
                for old, new in EDITS.get(name, ()):
                    content = content.replace(old.encode(), new.encode())
                self.write(name, content, os.stat(here).st_mode)
        if not os.path.exists(os.path.join(self.build, 'build.ninja')):
            subprocess.run(['meson', 'setup', self.build, self.source, '-Dwerror=false', '-Doptimization=2', '-Ddebug=false'],
                           check=True, stdout=subprocess.DEVNULL)
        self.run('ninja build.ninja')  # where a meson.build has changed

    def write(self, path, content, mode=0o644):
        """Writes the file where it differs."""
        there = os.path.join(self.source, path)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        if os.path.exists(there):
            with open(there, 'rb') as f:
                if f.read() == content:
                    return
        with open(there, 'wb') as f:
            f.write(content)
        os.chmod(there, mode)

    def run(self, command):
        return subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True, check=False)

    def learn(self, path):
        """Finds out how `path` is compiled and linked, and remembers what comes out."""
        with open(os.path.join(self.build, 'compile_commands.json'), encoding='utf-8') as f:
            for command in json.load(f):
                where = os.path.normpath(os.path.join(command['directory'], command['file']))
                if os.path.relpath(where, self.source) == path:
                    output = command['output']
                    compile_it = command['command'].removeprefix('ccache ')
        library = os.path.dirname(output).removesuffix('.p')
        link = self.run('ninja -t commands ' + library).stdout.strip().splitlines()[-1]
        self.commands[path] = output, compile_it, link
        self.make(path)
        self.originals[path] = self.code(path)

    def make(self, path):
        _, compile_it, link = self.commands[path]
        return not self.run(compile_it).returncode and not self.run(link).returncode

    def code(self, path):
        with open(os.path.join(self.build, self.commands[path][0]), 'rb') as f:
            return hashlib.sha256(f.read()).digest()

    def change(self, path, text, original):
        """Returns None where the changed library is there, or a verdict."""
        if self.dirty not in (None, path):
            self.make(self.dirty)
        self.dirty = path
        self.write(path, text.encode())
        compiled = not self.run(self.commands[path][1]).returncode
        self.write(path, original.encode())
        if not compiled:
            return 'not compiled'
        if self.code(path) == self.originals[path]:
            return 'same code'
        return 'not compiled' if self.run(self.commands[path][2]).returncode else None


class Check:
    """A test program: its target for ninja, how it is called, and how much CPU it needs."""

    def __init__(self, name, command, env):
        self.name, self.command, self.env = name, command, env
        self.cpu, self.kills, self.spent = 0.0, 0, 0.01

    def run(self, workshop, limit):
        """Returns None where it passed, or what happened."""
        env = dict(os.environ, **self.env)
        command = [os.path.join(workshop.build, self.command[0]), *self.command[1:]]

        def confine():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=workshop.build,
                                  stderr=subprocess.DEVNULL, preexec_fn=confine, timeout=60 + 20 * limit, check=False)
            status = done.returncode
        except subprocess.TimeoutExpired:
            return 'hangs'
        finally:
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.last = now.ru_utime + now.ru_stime - began.ru_utime - began.ru_stime
        if status == 0:
            return None
        return 'hangs' if status in (-24, -9) else 'crashes' if status < 0 else 'fails'

    def limit(self):
        return int(NEEDS_BASE + SLOWER * self.cpu)


def checks_of(workshop, group):
    suite, names, slices = group
    listed = subprocess.run(['meson', 'introspect', '--tests', workshop.build], capture_output=True, text=True, check=True)
    tests = json.loads(listed.stdout)
    programs = {t['name']: t['cmd'][0] for t in tests}
    result = []
    for t in tests:
        suites = [s.split(':')[-1] for s in t['suite']]
        if suite in suites and not {'sim', 'fuzz', 'rest'} & set(suites) and t['name'] not in SKIP and (not names or t['name'] in names) and \
                not t['cmd'][0].startswith('/usr') and t['cmd'][0].endswith(('.py', '.sh')) is False:
            command = [os.path.relpath(t['cmd'][0], workshop.build), *t['cmd'][1:]]
            if not command[0].startswith('..'):
                result.append(Check(t['name'], command, t['env']))
    for program, *args in slices:
        command = os.path.relpath(programs[program], workshop.build)
        result.append(Check(' '.join([program, *args]), [command, *args], {}))
    return result


def prepare(workshop, checks):
    """Builds all, and measures. Every test must pass while nothing is changed."""
    built = workshop.run('ninja -j1 ' + ' '.join(sorted({c.command[0] for c in checks})))
    if built.returncode:
        sys.exit('mutate.py: the unchanged sources do not build\n' + built.stdout[-3000:])
    for c in checks:
        what = c.run(workshop, 300)
        if what:
            sys.exit('mutate.py: %s %s before anything is changed' % (c.name, what))
        c.cpu = c.last


def judge(workshop, source, m, checks):
    """Returns (verdict, by what)."""
    verdict = workshop.change(m.path, changed(source, m), source)
    if verdict:
        return verdict, ''
    for c in sorted(checks, key=lambda c: -(c.kills + 0.5) / (c.spent + c.cpu + 0.1)):
        what = c.run(workshop, c.limit())
        c.spent += c.last + 0.02
        if what:
            c.kills += 1
            return 'killed', '%s %s' % (c.name, what)
    return 'survived', ''


# ---- the report ----

def choose(args):
    all_mutants, sources = [], {}
    for path in args.file or FILES:
        if path not in FILES:
            sys.exit('mutate.py: %s is not one of: %s' % (path, ', '.join(FILES)))
        with open(os.path.join(ROOT, path), encoding='utf-8') as f:
            sources[path] = f.read()
        all_mutants += mutants_of(path, sources[path])
    if args.sample:
        seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 31)
        draw = random.Random(seed)
        path = draw.choice(args.file or list(FILES))
        all_mutants = [m for m in all_mutants if m.path == path]
        print('mutate.py: %d of %d changes of %s, --seed %d' % (min(args.sample, len(all_mutants)), len(all_mutants), path, seed),
              flush=True)
        all_mutants = draw.sample(all_mutants, min(args.sample, len(all_mutants)))
    return all_mutants, sources


def worker(index, args, sources, todo, results):
    workshop = Workshop(os.path.abspath(os.path.join(args.dir, str(index))))
    groups = {}
    for path in sorted({m.path for m in todo.queue}):
        group = id(FILES[path])
        if group not in groups:
            groups[group] = checks_of(workshop, FILES[path])
            prepare(workshop, groups[group])
        workshop.learn(path)
    began = time.monotonic()
    while not args.limit or time.monotonic() - began < args.limit:
        try:
            m = todo.get_nowait()
        except queue.Empty:
            return
        verdict, by = judge(workshop, sources[m.path], m, groups[id(FILES[m.path])])
        results.append((m, verdict, by))
        if args.verbose:
            print('%s:%d: %s: %s %s' % (m.path, m.line, key(sources[m.path], m)[2], verdict, by), flush=True)


def report(results, sources, known):
    counts = collections.defaultdict(collections.Counter)
    unknown = 0
    for m, verdict, _ in sorted(results):
        explained = verdict == 'survived' and key(sources[m.path], m) in known
        counts[m.path]['explained' if explained else verdict] += 1
        if verdict == 'survived' and not explained:
            unknown += 1
            print('SURVIVED %s:%d: %s (%s)\n%s %s\n\t%s' % (m.path, m.line, m.function, m.what,
                                                          *key(sources[m.path], m)))
    columns = ('killed', 'survived', 'explained', 'same code', 'not compiled')
    print('%-26s %8s %s' % ('', 'changes', ' '.join('%12s' % c for c in columns)))
    for path in [*FILES, None]:
        row = counts[path] if path else sum(counts.values(), collections.Counter())
        if row:
            print('%-26s %8d %s' % (path or 'all', sum(row.values()), ' '.join('%12d' % row[c] for c in columns)))
    return unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--file', action='append')
    parser.add_argument('--sample', type=int)
    parser.add_argument('--seed', type=int)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--dir', default=os.path.join(ROOT, 'build-mutate'))
    parser.add_argument('--limit', type=float)
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--verbose', action='store_true')
    args = parser.parse_args()
    mutants, sources = choose(args)
    if args.list:
        for m in mutants:
            print('%s:%d: %s: %s (%s)' % (m.path, m.line, m.function, key(sources[m.path], m)[2], m.what))
        print('%d changes' % len(mutants))
        return 0
    began = time.monotonic()
    todo, results = queue.Queue(), []
    for m in mutants:
        todo.put(m)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in [pool.submit(worker, i, args, sources, todo, results) for i in range(args.jobs)]:
            done.result()
    unknown = report(results, sources, read_known())
    print('%d of %d changes, %.0f s' % (len(results), len(mutants), time.monotonic() - began))
    if unknown:
        print('mutate.py: %d changes were not noticed: write the test, or say in tests/mutants.txt why none can' % unknown)
    return 1 if unknown else 0


if __name__ == '__main__':
    sys.exit(main())
