// SPDX-License-Identifier: BSD-2-Clause
// What is drawn, in rows from top to bottom. A row is a moment: something leaves, arrives, or happens at an end.
const ROW_START = 0, ROW_END = 1, ROW_EVENT = 2, ROW_INNER = 3;
const BUCKET = 64;          // rows; arrows that cross rows are found by bucket
const SPAN_LIMIT = 64 * 64; // rows; what is longer is in a list of its own

const view = {
  fold: false,
  hiddenConversations: new Set(),
  hidden: new Set(), // of 'work', 'acks', 'connection'
};

function packetShown(i) {
  const flags = packets.flags[i];
  if (view.hiddenConversations.has(conversationOf(i)))
    return false;
  if (flags & PROBLEM)
    return true;
  return !(flags & ACK && view.hidden.has('acks')) && !(flags & CM && view.hidden.has('connection'));
}

function eventShown(i) {
  const kind = events.kind[i];
  if (events.conversation[i] >= 0 && view.hiddenConversations.has(events.conversation[i]))
    return false;
  if (events.bad[i])
    return true;
  if (kind === CONNECTION || kind === STATE)
    return !view.hidden.has('connection');
  return kind === FAULT || !view.hidden.has('work');
}

// The arrows: {packet, group (-1: a single packet), row0, row1 ...}.
function makeArrows() {
  const arrows = [], drawn = new Set();
  for (let i = 0; i < packetCount; i++) {
    if (!packetShown(i))
      continue;
    const g = groups.of[i], group = g >= 0 ? groups.list[g] : null;
    if (group && folds(g) && view.fold !== group.open && !standsOut(i, group)) {
      if (!drawn.has(g)) {
        drawn.add(g);
        arrows.push(groupArrow(g, group));
      }
      continue;
    }
    const arrived = packets.arrived[i];
    arrows.push({ packet: i, group: -1, t0: packets.t[i], t1: packets.t[i], a0: arrived, a1: arrived, row0: 0, row1: 0, mid0: 0, mid1: 0 });
  }
  return arrows;
}

function groupArrow(g, group) {
  const first = group.packets.find(i => !standsOut(i, group));
  const arrow = { packet: first, group: g, t0: Infinity, t1: -1, a0: Infinity, a1: -1, row0: 0, row1: 0, mid0: 0, mid1: 0 };
  for (const i of group.packets) {
    if (standsOut(i, group))
      continue;
    arrow.t0 = Math.min(arrow.t0, packets.t[i]);
    arrow.t1 = Math.max(arrow.t1, packets.t[i]);
    if (packets.arrived[i] >= 0) {
      arrow.a0 = Math.min(arrow.a0, packets.arrived[i]);
      arrow.a1 = Math.max(arrow.a1, packets.arrived[i]);
    }
  }
  if (arrow.a1 < 0)
    arrow.a0 = -1;
  return arrow;
}

// Moments in the order of time. At one moment what arrives is first, then what happens, then what leaves.
function makeMoments(arrows) {
  const moments = [];
  const add = (time, kind, ref, order) => moments.push({ time, kind, ref, order });
  arrows.forEach((arrow, n) => {
    add(arrow.t0, ROW_START, n, 3);
    if (arrow.group >= 0 && arrow.t1 > arrow.t0)
      add(arrow.t1, ROW_INNER, n, 4);
    if (arrow.group >= 0 && arrow.a0 >= 0 && arrow.a1 > arrow.a0)
      add(arrow.a0, ROW_INNER, n, 0);
    if (arrow.a1 >= 0)
      add(arrow.a1, ROW_END, n, 1);
  });
  for (let i = 0; i < eventCount; i++)
    if (eventShown(i))
      add(events.t[i], ROW_EVENT, i, 2);
  moments.sort((a, b) => a.time - b.time || a.order - b.order);
  return moments;
}

function placeArrows(arrows, moments) {
  for (const arrow of arrows)
    arrow.row0 = arrow.row1 = -1;
  moments.forEach((moment, row) => {
    if (moment.kind === ROW_EVENT)
      return;
    const arrow = arrows[moment.ref];
    if (moment.kind === ROW_START)
      arrow.row0 = arrow.mid0 = arrow.mid1 = row;
    if (moment.kind === ROW_INNER && moment.order === 4)
      arrow.mid0 = row;
    if (moment.kind === ROW_INNER && moment.order === 0)
      arrow.mid1 = row;
    if (moment.kind === ROW_END)
      arrow.row1 = row;
  });
  for (const arrow of arrows)
    if (arrow.row1 < 0)
      arrow.row1 = Math.max(arrow.row0, arrow.mid0);
}

function makeBuckets(arrows, rows) {
  const buckets = Array.from({ length: Math.ceil(rows / BUCKET) + 1 }, () => []), long = [];
  arrows.forEach((arrow, n) => {
    const top = Math.min(arrow.row0, arrow.row1, arrow.mid1), bottom = Math.max(arrow.row0, arrow.row1, arrow.mid0);
    arrow.top = top;
    arrow.bottom = bottom;
    if (bottom - top > SPAN_LIMIT) {
      long.push(n);
      return;
    }
    for (let b = Math.floor(top / BUCKET); b <= Math.floor(bottom / BUCKET); b++)
      buckets[b].push(n);
  });
  return { buckets, long };
}

let layout;

function makeLayout() {
  const arrows = makeArrows(), moments = makeMoments(arrows);
  placeArrows(arrows, moments);
  layout = { arrows, moments, rows: moments.length, ...makeBuckets(arrows, moments.length), problems: null };
}

// Arrows that touch rows top to bottom; at most `limit`, those that begin there first.
function arrowsAt(top, bottom, limit) {
  const found = new Set();
  for (let b = Math.max(0, Math.floor(top / BUCKET)); b <= Math.floor(bottom / BUCKET) && b < layout.buckets.length; b++)
    for (const n of layout.buckets[b])
      if (layout.arrows[n].bottom >= top && layout.arrows[n].top <= bottom)
        found.add(n);
  for (const n of layout.long)
    if (layout.arrows[n].bottom >= top && layout.arrows[n].top <= bottom)
      found.add(n);
  const inside = n => layout.arrows[n].row0 >= top && layout.arrows[n].row0 <= bottom;
  const list = [...found].sort((a, b) => inside(b) - inside(a) || a - b);
  return list.slice(0, limit);
}

function rowIsProblem(row) {
  const moment = layout.moments[row];
  if (moment.kind === ROW_EVENT)
    return events.bad[moment.ref] === 2;
  if (moment.kind !== ROW_START)
    return false;
  const arrow = layout.arrows[moment.ref];
  return ((arrow.group < 0 ? packets.flags[arrow.packet] : groups.list[arrow.group].flags) & PROBLEM) !== 0;
}

function problemRows() {
  if (!layout.problems) {
    layout.problems = [];
    for (let row = 0; row < layout.rows; row++)
      if (rowIsProblem(row))
        layout.problems.push(row);
  }
  return layout.problems;
}

const packetText = i => packetLabel(i) + ' psn ' + packets.psn[i] + ' frame ' + packets.number[i] + ' ' + packetExtra(i) + ' ' + packets.text[i] + ' ' + packets.fields[i];

// Whether a row has the text, which is in small letters. A folded message has what its packets have.
function rowHas(row, text) {
  const has = words => words.toLowerCase().includes(text), moment = layout.moments[row];
  if (moment.kind === ROW_EVENT)
    return has(events.text[moment.ref] + ' ' + events.id[moment.ref]);
  const arrow = layout.arrows[moment.ref], g = arrow.group;
  if (g < 0)
    return has(packetText(arrow.packet));
  return has(groupLabel(g) + ' ' + groupExtra(g)) || groups.list[g].packets.some(i => !standsOut(i, groups.list[g]) && has(packetText(i)));
}
