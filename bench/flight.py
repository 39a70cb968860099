#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/flight.py [SCENE ...]

What a packet of a far path costs: instructions in the engines of both ends for each packet of the data, with few and
with a hundred thousand in flight, without loss and with 5 %. Scenes are those of build/tests/sim/lines, in virtual
time, counted by callgrind. Takes some minutes. The build, $ROCI_BUILD or ./build, must have -Ddebug=true.
"""
import argparse
import os
import re
import subprocess
import tempfile

BUILD = os.environ.get('ROCI_BUILD', os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'build'))
SCENES = ('far', 'very-lossy', 'thick', 'thick-lossy')


def instructions(path):
    """Of the functions of src/engine, and of what is inlined there."""
    table = subprocess.run(['callgrind_annotate', '--threshold=100', '--auto=no', '--show-percs=no', path], check=True,
                           capture_output=True, text=True).stdout
    return sum(int(count.replace(',', '')) for count, _ in re.findall(r'^ *([\d,]+) +(\S*/engine/\S+)', table, re.MULTILINE))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', 1)[1], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('scenes', metavar='SCENE', nargs='*', default=SCENES, help=f'default: {", ".join(SCENES)}')
    scenes = parser.parse_args().scenes
    print(f'{"scene":20}{"packets":>10}{"instructions a packet":>24}')
    for scene in scenes:
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, 'out')
            lines = subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}',
                                    os.path.join(BUILD, 'tests', 'sim', 'lines'), scene],
                                   check=True, capture_output=True, text=True).stdout
            packets, count = int(lines.splitlines()[1].split()[-1]), instructions(out)
            if not count:
                parser.exit(1, 'callgrind names no source files: this build needs `meson configure -Ddebug=true`\n')
            print(f'{scene:20}{packets:10}{count / packets:24.0f}', flush=True)


if __name__ == '__main__':
    main()
