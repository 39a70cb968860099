// SPDX-License-Identifier: BSD-2-Clause
// The panel at the right, with every field of what is selected, and the tip under the pointer.
const panel = document.getElementById('panel'), detail = document.getElementById('detail'), tip = document.getElementById('tip');

function put(parent, name, text, cls) {
  const element = document.createElement(name);
  if (text !== undefined)
    element.textContent = text;
  if (cls)
    element.className = cls;
  parent.append(element);
  return element;
}

function list(title, rows) {
  const shown = rows.filter(row => row[1] !== '' && row[1] !== undefined);
  if (!shown.length)
    return;
  put(detail, 'h3', title);
  const dl = put(detail, 'dl');
  for (const [key, value] of shown) {
    put(dl, 'dt', key);
    put(dl, 'dd', value);
  }
}

function jump(text, row) {
  if (row >= 0)
    put(detail, 'button', text, 'jump').addEventListener('click', () => select(row));
}

const endName = i => data.ends[i].name + ', ' + data.ends[i].about;
// "R_Key=0x12;Length=5" as rows.
const fieldRows = text => text ? text.split(';').map(part => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]) : [];

function payloadRows(text) {
  if (!text)
    return [];
  const bytes = text.match(/../g).map(byte => parseInt(byte, 16));
  return [['First bytes', bytes.map(byte => byte.toString(16).padStart(2, '0')).join(' ')],
    ['As text', bytes.map(byte => byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·').join('')]];
}

function explainPacket(i) {
  const text = data.explanations[packets.explain[i]];
  if (text)
    put(detail, 'p', text, 'explain');
}

function showPacket(i) {
  const flow = flowOf(i), bits = packets.bits[i], flags = packets.flags[i], conversation = data.conversations[flow.conversation];
  put(detail, 'h2', packetLabel(i));
  if (packets.text[i] !== packetLabel(i))
    put(detail, 'p', packets.text[i]);
  if (packetExtra(i) && flags & PROBLEM)
    put(detail, 'p', packetExtra(i), 'explain' + (flags & (BAD | LOST) ? '' : ' warn'));
  explainPacket(i);
  list('Way', [['From', endName(from(i))], ['To', endName(to(i))], ['Left', flags & LOST_BEFORE ? '' : timeText(packets.t[i])],
    ['Arrived', packets.arrived[i] >= 0 ? timeText(packets.arrived[i]) : ''],
    ['On its way', packets.arrived[i] >= 0 ? spanText(packets.arrived[i] - packets.t[i]) : ''],
    ['Frame', [packets.number[i], packets.arrivedNumber[i]].filter(n => n > 0).join(' and ')]]);
  list('IP and UDP', [['Source', flow.source], ['Destination', flow.destination],
    ['UDP ports', flow.sourcePort + ' → ' + flow.destinationPort], ['Length', packets.length[i] ? packets.length[i] + ' B of UDP payload' : '']]);
  list('Base transport header', [['Opcode', (data.opcodes[packets.opcode[i]] || '?') + ' (' + hex(packets.opcode[i], 2) + ')'],
    ['Destination QP', hex(packets.qpn[i], 6)], ['Source QP', conversation.qpns[flow.end] ? hex(conversation.qpns[flow.end], 6) : 'not in the packet'],
    ['PSN', packets.psn[i]], ['Asks for ACK', bits & 1 ? 'yes' : 'no'], ['Solicited event', bits & 2 ? 'yes' : 'no'], ['MigReq', bits & 4 ? '1' : '0'],
    ['FECN, BECN', (bits & 8 ? '1' : '0') + ', ' + (bits & 16 ? '1' : '0')], ['P_Key', flags & LOST_BEFORE ? '' : hex(bits >>> 8 & 0xffff, 4)]]);
  list('More headers', fieldRows(packets.fields[i]));
  list('Payload', [['Bytes', packets.bytes[i]], ...payloadRows(packets.payload[i])]);
  list('ICRC', [['Checked', ['not possible: the packet is not here as a whole', 'right', 'wrong: damaged on its way'][packets.icrc[i]]]]);
}

function showMessageParts(i) {
  const m = packets.message[i];
  if (m < 0 || packets.flags[i] & CM) // no program posts what connection management sends
    return;
  const message = messages[m];
  const find = (event, text) => event >= 0 && jump(text + '  ' + events.id[event], rowOfEvent(event));
  put(detail, 'h3', 'Its work request');
  find(message.post, '■ post');
  find(message.completion, '● completion');
  find(message.receive, '● receive completion at the other end');
  if (message.post >= 0 && message.completion >= 0)
    put(detail, 'p', 'From post to completion: ' + spanText(events.t[message.completion] - events.t[message.post]));
  if (message.post < 0)
    put(detail, 'p', 'Not in the capture. Captures of roci0 have posts and completions.');
}

function acknowledgementsText(group) {
  const n = group.packets.filter(i => !standsOut(i, group)).length;
  return countText(n, 'acknowledgement', 'acknowledgements') + '; this is what the last one says';
}

function showGroup(g) {
  const group = groups.list[g], first = group.packets[0];
  put(detail, 'h2', groupLabel(g));
  put(detail, 'p', group.flags & ACK ? acknowledgementsText(group) : packets.text[first]);
  if (groupExtra(g))
    put(detail, 'p', groupExtra(g), 'explain warn');
  const times = group.packets.map(i => packets.t[i]), arrivals = group.packets.map(i => packets.arrived[i]).filter(t => t >= 0);
  list('Way', [['From', endName(from(first))], ['To', endName(to(first))], ['First packet left', timeText(times.reduce((a, b) => Math.min(a, b)))],
    ['Last packet left', timeText(times.reduce((a, b) => Math.max(a, b)))],
    ['Last packet arrived', arrivals.length ? timeText(arrivals.reduce((a, b) => Math.max(a, b))) : '']]);
  list('Content', [['Bytes', group.bytes], ['Packets', group.packets.length], ['PSN', packets.psn[first] + ' to ' + packets.psn[group.packets[group.packets.length - 1]]]]);
  put(detail, 'button', 'Show its packets (Enter)', 'jump').addEventListener('click', () => toggle(g));
}

function showEvent(i) {
  put(detail, 'h2', events.text[i]);
  if (data.explanations[events.explain[i]])
    put(detail, 'p', data.explanations[events.explain[i]], 'explain' + (events.bad[i] === 2 ? '' : ' warn'));
  list('Where and when', [['End', endName(events.end[i])], ['Time', timeText(events.t[i])]]);
  list('Fields', fieldRows(events.fields[i]));
}

function showDetail(row) {
  const moment = layout.moments[row];
  detail.replaceChildren();
  panel.hidden = false;
  panel.scrollTop = 0;
  if (moment.kind === ROW_EVENT) {
    showEvent(moment.ref);
    return;
  }
  const arrow = layout.arrows[moment.ref];
  if (arrow.group >= 0)
    showGroup(arrow.group);
  else
    showPacket(arrow.packet);
  showMessageParts(arrow.packet);
  if (arrow.group < 0 && groups.of[arrow.packet] >= 0 && folds(groups.of[arrow.packet]))
    put(detail, 'button', 'Close the message (Enter)', 'jump').addEventListener('click', () => toggle(groups.of[arrow.packet]));
}

function tipText(target) {
  if (target.dataset.event !== undefined) {
    const i = +target.dataset.event;
    return timeText(events.t[i]) + '  ' + events.text[i] + (events.id[i] ? '\n' + events.id[i] : '') + '\n' + events.fields[i].replaceAll(';', '\n');
  }
  const arrow = layout.arrows[+target.dataset.arrow], i = arrow.packet;
  if (arrow.group >= 0)
    return groupLabel(arrow.group) + '\n' + (groupExtra(arrow.group) ? groupExtra(arrow.group) + '\n' : '') + 'Click: details. Double click or Enter: its packets.';
  return [timeText(packets.t[i]) + '  ' + opName(i) + ', PSN ' + packets.psn[i], packets.text[i], packets.flags[i] & PROBLEM ? packetExtra(i) : '',
    packets.arrived[i] >= 0 ? 'arrives ' + spanText(packets.arrived[i] - packets.t[i]) + ' later' : '', packets.fields[i].replaceAll(';', ', ')]
    .filter(line => line).join('\n');
}

function showTip(target, x, y) {
  tip.hidden = !target;
  if (!target)
    return;
  tip.textContent = tipText(target);
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (y + 20 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 12 : y + 18) + 'px';
}
