# SPDX-License-Identifier: BSD-2-Clause
"""The table that bench/all.py prints: measurements that take turns, and rows that compare their medians."""
import json
import statistics
from dataclasses import dataclass, field
from typing import Callable

import harness

LESS_IS_BETTER = ('us', 's', 'bytes', '%')


@dataclass
class Measurement:
    """take() returns one figure. `ours`: it runs Rocinante, so it is also taken with the build of --before."""
    unit: str
    take: Callable[[], float]
    ours: bool = False


@dataclass
class Row:
    """One comparison. `ours` and `theirs` are names of measurements; of several theirs the best counts. at_least: of the
    ratio, which is made so that more is better; 0: no goal, the row shows what bounds another one. A row without theirs has no ratio: its figure must be at most `limit`."""
    what: str
    ours: str
    theirs: tuple = ()
    at_least: float = 0
    limit: float = 0


@dataclass
class Group:
    """Rows that are measured in turns. `why_not`: why they cannot be measured here."""
    name: str
    measurements: dict = field(default_factory=dict)
    rows: list = field(default_factory=list)
    rounds: int = 0  # 0: as many as the command says
    why_not: str = ''


def ratio(unit, ours, theirs):
    if not ours or not theirs:
        return 0.0
    return theirs / ours if unit in LESS_IS_BETTER else ours / theirs


def take_all(group, rounds, builds, progress):
    """{(measurement, build): [figures]}, {measurement: reason of failure}. Each round begins with another one."""
    turns = [(name, label) for name, m in group.measurements.items() for label in (builds if m.ours else ('',))]
    found, failed = {turn: [] for turn in turns}, {}
    for number in range(rounds):
        first = number % len(turns)
        for name, label in turns[first:] + turns[:first]:
            if name in failed:
                continue
            harness.ROCI, harness.PROGRAMS = builds[label or '']
            try:
                found[name, label].append(group.measurements[name].take())
                progress(f'{group.name}: round {number + 1}: {name}{label and " " + label}: '
                         f'{found[name, label][-1]:.4g} {group.measurements[name].unit}')
            except (harness.Failure, harness.Skip) as failure:
                failed[name] = str(failure)
                progress(f'{group.name}: {name} failed:\n{failure}')
    return found, failed


def reason(text):
    """The line of a report that says what went wrong, as far as one can tell."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line and not line.startswith(('server:', 'client:', '$', '--'))), text)


def compare(group, row, found, failed):
    """One row of the result, ready for JSON."""
    result = {'path': group.name, 'what': row.what, 'against': ' or '.join(row.theirs), 'at_least': row.at_least}
    broken = [name for name in (row.ours, *row.theirs) if name in failed]
    if group.why_not or row.ours in broken or row.theirs and set(row.theirs) <= set(broken):
        return dict(result, why_not=group.why_not or f'{broken[0]}: {reason(failed[broken[0]])}')
    unit = group.measurements[row.ours].unit
    best = min if unit in LESS_IS_BETTER else max
    ours = statistics.median(found[row.ours, ''])
    result.update(unit=unit, ours=ours)
    if row.theirs:
        medians = {name: statistics.median(found[name, '']) for name in row.theirs if name not in failed}
        against = best(medians, key=medians.get)
        result.update(against=against, theirs=medians[against], ratio=ratio(unit, ours, medians[against]))
        result['met'] = result['ratio'] >= row.at_least if row.at_least else None
    else:
        result.update(limit=row.limit, met=ours <= row.limit)
    if found.get((row.ours, 'before')):
        before = statistics.median(found[row.ours, 'before'])
        result.update(before=before, gain=ratio(unit, ours, before))
    return result


def line_of(r):
    head = f'{r["path"]:10} {r["what"]:34} '
    if 'why_not' in r:
        return head + f'not measured: {r["why_not"]}'
    if 'ratio' in r:
        goal = f'{r["at_least"]:.2f}' if r['at_least'] else '-'
        rest = f'{r["ours"]:9.4g} {r["theirs"]:9.4g} {r["unit"]:11} {r["ratio"]:6.2f} {goal:>6}  '
    else:
        rest = f'{r["ours"]:9.4g} {"":9} {r["unit"]:11} {"":6} {r["limit"]:6g}  '
    met = {True: 'yes', False: 'NO', None: '-'}[r['met']]
    gain = f'  before {r["before"]:.4g}: {r["gain"]:.2f}' if 'before' in r else ''
    return head + rest + f'{met:4} {r["against"]}{gain}'


def measure(groups, rounds, builds, progress):
    """Measures the groups one after the other. Returns the rows of the result."""
    results = []
    for group in groups:
        found, failed = ({}, {}) if group.why_not else take_all(group, group.rounds or rounds, builds, progress)
        for row in group.rows:
            results.append(compare(group, row, found, failed))
            progress(line_of(results[-1]))
    return results


def show(results):
    print(f'{"path":10} {"what":34} {"ours":>9} {"theirs":>9} {"":11} {"ratio":>6} {"least":>6}  met  against')
    for result in results:
        print(line_of(result))


def save(results, path):
    with open(path, 'w') as f:
        json.dump(results, f, indent=1)
        f.write('\n')
