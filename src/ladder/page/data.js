// SPDX-License-Identifier: BSD-2-Clause
// The picture's data, as src/ladder/page.c writes them: columns of packets and events, and what they belong to.
const data = JSON.parse(document.getElementById('ladder-data').textContent);
const packets = data.packets, events = data.events, messages = data.messages;
const packetCount = packets.t.length, eventCount = events.t.length;

// Bits of packets.flags: enum ladder_flag of src/ladder/ladder.h.
const AGAIN = 1, DUPLICATE = 2, OUT_OF_ORDER = 4, LATE = 8, NAK = 16, RNR = 32, BAD_ICRC = 64, REJECT = 128, CONGESTED = 256,
  MALFORMED = 512, LOST_BEFORE = 1024, LOST_AFTER = 2048, LOST_BETWEEN = 4096, ACK = 8192, CM = 16384;
const LOST = LOST_BEFORE | LOST_AFTER | LOST_BETWEEN;
const BAD = NAK | BAD_ICRC | REJECT | MALFORMED;
const PROBLEM = LOST | BAD | AGAIN | DUPLICATE | OUT_OF_ORDER | RNR;

// Of a folded message, these packets stand out: they are drawn beside it, unless they are a lot.
const STANDS_OUT = LOST | AGAIN | NAK | RNR, MANY = 16;

// Kinds of events: enum ladder_event_kind.
const POST_SEND = 1, POST_RECV = 2, COMPLETION = 3, STATE = 4, CONNECTION = 5, FAULT = 6;

const flowOf = i => data.flows[packets.flow[i]];
const from = i => packets.from[i];
const to = i => packets.to[i];
const conversationOf = i => flowOf(i).conversation;

// Of all packets of a message that go one way, one group: what an arrow stands for when it is folded. Its flags are those
// of the packets that the arrow stands for. Its bytes are those of the message: a packet that was sent again counts once.
function makeGroups() {
  const groups = [], byKey = new Map(), counted = new Set(), of = new Int32Array(packetCount).fill(-1);
  for (let i = 0; i < packetCount; i++) {
    if (packets.message[i] < 0)
      continue;
    const key = packets.message[i] * 4 + flowOf(i).end * 2 + (packets.flags[i] & ACK ? 1 : 0);
    let g = byKey.get(key);
    if (g === undefined) {
      g = groups.length;
      byKey.set(key, g);
      groups.push({ packets: [], flags: 0, bytes: 0, problems: 0, open: false });
    }
    groups[g].packets.push(i);
    groups[g].problems += (packets.flags[i] & STANDS_OUT) !== 0;
    const place = g * 0x1000000 + packets.psn[i];
    groups[g].bytes += counted.has(place) ? 0 : packets.bytes[i];
    counted.add(place);
    of[i] = g;
  }
  for (const group of groups)
    group.flags = group.packets.filter(i => !standsOut(i, group)).reduce((flags, i) => flags | packets.flags[i], 0);
  return { list: groups, of };
}
const standsOut = (i, group) => (packets.flags[i] & STANDS_OUT) !== 0 && group.problems <= MANY;
const folds = g => groups.list[g].packets.length - (groups.list[g].problems <= MANY ? groups.list[g].problems : 0) > 1;
const groups = makeGroups();

function timeText(ns) {
  if (ns < 1e6)
    return (ns / 1e3).toFixed(1) + ' µs';
  if (ns < 1e9)
    return (ns / 1e6).toFixed(ns < 1e7 ? 4 : 3) + ' ms';
  return (ns / 1e9).toFixed(6) + ' s';
}

function spanText(ns) {
  return ns < 1e3 ? ns + ' ns' : ns < 1e6 ? (ns / 1e3).toFixed(1) + ' µs' : ns < 1e9 ? (ns / 1e6).toFixed(2) + ' ms' : (ns / 1e9).toFixed(2) + ' s';
}

function sizeText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0, n = bytes;
  while (n >= 1024 && unit < 3 && (n % 1024 === 0 || n >= 10240)) {
    n /= 1024;
    unit++;
  }
  return (Number.isInteger(n) ? n : n.toFixed(1)) + ' ' + units[unit];
}

const countText = (n, one, many) => n.toLocaleString('en') + ' ' + (n === 1 ? one : many);
const hex = (n, digits) => '0x' + n.toString(16).padStart(digits || 0, '0');

// "RC SEND Only": the name of the opcode without its transport.
function opName(i) {
  return (data.opcodes[packets.opcode[i]] || 'opcode ' + hex(packets.opcode[i], 2)).replace(/^(RC|UC|UD) (RDMA )?/, '');
}

function packetLabel(i) {
  const flags = packets.flags[i];
  if (flags & (CM | ACK | MALFORMED))
    return packets.text[i];
  const bytes = packets.bytes[i];
  return opName(i) + (bytes ? '  ' + sizeText(bytes) : '');
}

// What is said behind the label, in a few words.
function packetExtra(i) {
  const flags = packets.flags[i], words = [];
  if (flags & AGAIN) words.push('↻ sent again');
  if (flags & LOST_BEFORE) words.push('lost on purpose, before it was sent');
  if (flags & LOST_AFTER) words.push('lost on purpose, as it arrived');
  if (flags & LOST_BETWEEN) words.push('lost on its way');
  if (flags & DUPLICATE) words.push('duplicate');
  if (flags & OUT_OF_ORDER) words.push('out of order');
  if (flags & BAD_ICRC) words.push('damaged: wrong ICRC');
  if (flags & CONGESTED) words.push('congestion');
  if (!(flags & (CM | ACK))) words.unshift('PSN ' + packets.psn[i]);
  return words.join(' · ');
}

function groupLabel(g) {
  const group = groups.list[g], first = group.packets[0], n = group.packets.length;
  if (packets.flags[first] & ACK)
    return packets.text[group.packets.findLast(i => !standsOut(i, group))];
  const message = messages[packets.message[first]];
  const response = flowOf(first).end !== message.end;
  return (response ? message.kind + ' response' : message.kind) + '  ' + sizeText(group.bytes || message.bytes) + ' · ' + countText(n, 'packet', 'packets');
}

function groupExtra(g) {
  const group = groups.list[g], words = [];
  const tally = (bits, text) => {
    const n = group.packets.filter(i => packets.flags[i] & bits).length;
    if (n)
      words.push(n + ' ' + text);
  };
  tally(LOST, '✕ lost');
  tally(AGAIN, '↻ sent again');
  tally(NAK, 'NAK');
  tally(RNR, 'RNR NAK');
  tally(OUT_OF_ORDER, 'out of order');
  tally(BAD_ICRC, 'damaged');
  return words.join(' · ');
}
