// SPDX-License-Identifier: BSD-2-Clause
// Draws the rows that can be seen, as SVG. All text goes in by textContent: nothing of a capture is markup.
const GUTTER = 96, HEAD = 62, MAX_ARROWS = 400, MAX_SCROLL = 15e6, PAUSE_NS = 1e6;
const SVG = 'http://www.w3.org/2000/svg';
const stage = document.getElementById('stage'), scroller = document.getElementById('scroller'), spacer = document.getElementById('spacer');
const draw = { rowHeight: 24, selected: -1, matches: null, drawn: 0 };

function make(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes)
    element.setAttribute(key, attributes[key]);
  if (text !== undefined)
    element.textContent = text;
  parent.append(element);
  return element;
}

const conversationColor = c => c < 0 || data.conversations[c].color < 0 ? 'var(--neutral)' : 'var(--c' + data.conversations[c].color % 8 + ')';

// Where the life lines stand. Two have room for events at their outer sides; of more, events are at the right of each.
function railsOf(width) {
  const n = data.ends.length, side = Math.min(250, width * 0.2);
  const left = GUTTER + (n > 2 ? 60 : side), right = width - (n > 2 ? side + 20 : side) - 10;
  return n === 1 ? [(left + right) / 2] : data.ends.map((_, i) => left + (right - left) * i / (n - 1));
}

const ruler = document.createElement('canvas').getContext('2d');
const family = getComputedStyle(document.body).fontFamily;

function widthOf(text, font) {
  ruler.font = (font || '13px') + ' ' + family;
  return ruler.measureText(text).width;
}

// As much of a text as is not wider than `width` pixels.
function clip(text, width, font) {
  if (widthOf(text, font) <= width)
    return text;
  let least = 1, most = Math.min(text.length, 400);
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (widthOf(text.slice(0, middle) + '…', font) <= width)
      least = middle;
    else
      most = middle - 1;
  }
  return text.slice(0, least) + '…';
}

// What one drawing needs: rows top to bottom, drawn from y on.
function canvas(svg, width, top, bottom, y, height) {
  return { svg, width, top, bottom, rails: railsOf(width), height, y: row => y + (row - top + 0.5) * draw.rowHeight, labels: draw.rowHeight >= 14 };
}

function drawRows(c, firstRow) {
  const lights = make(c.svg, 'g', {}), background = make(c.svg, 'g', {});
  for (const x of c.rails)
    make(background, 'line', { class: 'rail', x1: x, x2: x, y1: 0, y2: c.height });
  let last = -1e9;
  for (let row = c.top; row <= c.bottom; row++) {
    const y = c.y(row), moment = layout.moments[row];
    const cls = row === draw.selected ? 'row-at' : draw.matches && draw.matches.has(row) ? 'row-match' : '';
    if (cls)
      make(lights, 'rect', { class: cls, x: 0, y: y - draw.rowHeight / 2, width: c.width, height: draw.rowHeight });
    const pause = row > 0 ? moment.time - layout.moments[row - 1].time : 0;
    if (pause >= PAUSE_NS && row > firstRow) {
      const at = y - draw.rowHeight / 2;
      for (const x of c.rails)
        make(background, 'line', { class: 'pause', x1: x - 5, x2: x + 6, y1: at, y2: at });
      make(background, 'line', { class: 'pause', x1: 8, x2: GUTTER - 6, y1: at, y2: at });
      if (draw.rowHeight >= 20)
        make(background, 'text', { class: 'pause-text', x: GUTTER - 2, y: at + 4 }, spanText(pause) + ' later');
    }
    if (c.labels && y - last >= 13) {
      make(background, 'text', { class: 'time', x: GUTTER - 10, y: y + 4 }, timeText(moment.time));
      last = y;
    }
  }
}

function arrowHead(g, x, y, dx, dy) {
  const length = Math.hypot(dx, dy) || 1, ux = dx / length, uy = dy / length;
  const bx = x - ux * 9, by = y - uy * 9;
  make(g, 'path', { class: 'tip', d: `M${x} ${y}L${bx - uy * 4.5} ${by + ux * 4.5}L${bx + uy * 4.5} ${by - ux * 4.5}Z` });
}

function drawCross(g, x, y) {
  make(g, 'path', { class: 'cross', d: `M${x - 6} ${y - 6}L${x + 6} ${y + 6}M${x + 6} ${y - 6}L${x - 6} ${y + 6}` });
}

// Where an arrow ends. One that was lost on its way ends before the other life line.
function arrowEnd(c, arrow, flags, x0, x1) {
  const row = arrow.row1;
  const y = row === arrow.row0 ? c.y(row) + Math.min(8, draw.rowHeight * 0.3) : c.y(row);
  if (arrow.group < 0 && flags & LOST_BEFORE)
    return { x: x0 + (x1 - x0) * 0.1, y: c.y(arrow.row0) };
  if (arrow.group < 0 && flags & LOST_BETWEEN)
    return { x: x0 + (x1 - x0) * 0.55, y: c.y(arrow.row0) + draw.rowHeight * 0.4 };
  return { x: x1, y };
}

function arrowClass(arrow, flags) {
  const single = arrow.group < 0;
  return 'arrow' + (flags & ACK ? ' ack' : '') + (single && flags & LOST ? ' lost' : flags & BAD && (single || flags & ACK) ? ' bad' : flags & AGAIN && single ? ' again' : '');
}

function drawArrow(c, n) {
  const arrow = layout.arrows[n], i = arrow.packet, folded = arrow.group >= 0;
  const flags = folded ? groups.list[arrow.group].flags : packets.flags[i];
  const x0 = c.rails[from(i)], far = c.rails[to(i)], dir = Math.sign(far - x0) || 1;
  const end = arrowEnd(c, arrow, flags, x0, far), y0 = c.y(arrow.row0);
  const g = make(c.svg, 'g', { class: arrowClass(arrow, flags) + (draw.selected === arrow.row0 ? ' at' : ''), 'data-arrow': n,
    'data-kind': folded ? 'message' : 'packet' });
  g.style.setProperty('--c', conversationColor(conversationOf(i)));
  if (folded && !(flags & ACK)) {
    const m0 = c.y(arrow.mid0), m1 = arrow.a0 >= 0 ? c.y(arrow.mid1 || arrow.row1) : y0 + 6;
    const thick = Math.max(0, 10 - (m0 - y0)) / 2;
    make(g, 'path', { class: 'band', d: `M${x0} ${y0 - thick}L${far} ${Math.min(m1, end.y) - thick}V${end.y + thick}L${x0} ${m0 + thick}Z` });
    make(g, 'path', { class: 'line', d: `M${x0} ${m0}L${far} ${end.y}` });
  } else {
    make(g, 'path', { class: 'reach', d: `M${x0} ${y0}L${end.x} ${end.y}` });
    make(g, 'path', { class: 'line', d: `M${x0} ${y0}L${end.x} ${end.y}` });
  }
  if (flags & LOST && !folded)
    drawCross(g, flags & LOST_AFTER ? end.x - dir * 14 : end.x, end.y - (flags & LOST_AFTER ? (end.y - y0) * 14 / Math.abs(far - x0) : 0));
  if (!(flags & (LOST_BEFORE | LOST_BETWEEN)) || folded)
    arrowHead(g, end.x - dir, end.y, end.x - x0, folded ? end.y - c.y(arrow.mid0) : end.y - y0);
  if (c.labels) {
    const above = make(c.texts, 'g', { class: g.getAttribute('class'), 'data-label': n });
    above.style.setProperty('--c', conversationColor(conversationOf(i)));
    above.dataset.arrow = n;
    arrowLabel(c, above, arrow, x0, far, dir, flags);
  }
}

// At the sender, above the line, which slopes away below it. What does not fit in is cut off.
function arrowLabel(c, g, arrow, x0, far, dir, flags) {
  const i = arrow.packet, folded = arrow.group >= 0;
  const label = folded ? groupLabel(arrow.group) : packetLabel(i), extra = folded ? groupExtra(arrow.group) : packetExtra(i);
  const room = Math.abs(far - x0) - 30, steep = arrow.row1 !== arrow.row0, font = flags & ACK ? '13px' : '600 13px';
  const shift = flags & LOST_BEFORE && !folded ? room * 0.1 + 24 : 12;
  const y = c.y(arrow.row0) + (flags & LOST_BEFORE && !folded ? 4 : folded ? 4 : steep ? -3 : -3);
  const paper = make(g, 'rect', { class: 'paper' });
  const text = make(g, 'text', { class: 'label', x: x0 + dir * shift, y, 'text-anchor': dir > 0 ? 'start' : 'end' });
  const toggle = folded ? '▸ ' : '';
  const main = clip(toggle + label, room - shift, font);
  make(text, 'tspan', {}, main);
  const rest = room - shift - widthOf(main, font) - 8;
  const more = extra && rest > 60 ? clip(extra, rest) : '';
  if (more)
    make(text, 'tspan', { class: 'extra', dx: 8 }, more);
  const width = widthOf(main, font) + (more ? widthOf(more) + 8 : 0) + 6, left = dir > 0 ? x0 + shift - 3 : x0 - shift - width + 3;
  for (const [key, value] of [['x', left], ['y', y - 11], ['width', width], ['height', 14], ['rx', 3]])
    paper.setAttribute(key, value);
}

function eventMark(g, kind, bad, x, y) {
  if (kind === POST_SEND)
    make(g, 'rect', { class: 'post', x: x - 5, y: y - 5, width: 10, height: 10, rx: 2 });
  else if (kind === POST_RECV)
    make(g, 'rect', { class: 'recv', x: x - 4.5, y: y - 4.5, width: 9, height: 9, rx: 2 });
  else if (kind === COMPLETION) {
    make(g, 'circle', { class: 'done', cx: x, cy: y, r: 6.5 });
    make(g, 'path', { class: 'tick', d: bad ? `M${x - 2.5} ${y - 2.5}l5 5m0 -5l-5 5` : `M${x - 3} ${y}l2 2.5l4 -5` });
  } else
    make(g, 'path', { class: 'other', d: `M${x} ${y - 5.5}L${x + 5.5} ${y}L${x} ${y + 5.5}L${x - 5.5} ${y}Z` });
}

function drawEvent(c, row) {
  const i = layout.moments[row].ref, end = events.end[i], x = c.rails[end], y = c.y(row), kind = events.kind[i], bad = events.bad[i];
  const left = data.ends.length === 2 && end === 0, dir = left ? -1 : 1;
  const room = left ? x - GUTTER - 20 : data.ends.length === 2 ? c.width - x - 20 : 220;
  const g = make(c.svg, 'g', { class: 'event' + (bad === 2 ? ' bad' : bad === 1 || kind === POST_RECV ? ' faint' : ''), 'data-event': i });
  g.style.setProperty('--c', conversationColor(events.conversation[i]));
  eventMark(g, kind, bad, x, y);
  if (!c.labels)
    return;
  const text = make(g, 'text', { class: 'label', x: x + dir * 14, y: y + 4.5, 'text-anchor': left ? 'end' : 'start' });
  const font = bad === 2 ? '650 13px' : '13px', label = clip(events.text[i], room, font), rest = room - widthOf(label, font) - 8;
  const id = events.id[i] && widthOf(events.id[i], '12px') <= rest ? events.id[i] : '';
  if (left && id)
    make(text, 'tspan', { class: 'id' }, id + '  ');
  make(text, 'tspan', {}, label);
  if (!left && id)
    make(text, 'tspan', { class: 'id' }, '  ' + id);
}

function drawHeads(c) {
  make(c.svg, 'rect', { class: 'head-bg', x: 0, y: 0, width: c.width, height: HEAD });
  const gap = c.rails.length > 1 ? c.rails[1] - c.rails[0] : c.width, room = Math.max(0, Math.min(230, gap - 12));
  data.ends.forEach((end, i) => {
    const x = Math.max(room / 2 + 4, Math.min(c.width - room / 2 - 4, c.rails[i]));
    make(c.svg, 'rect', { class: 'head-box', x: x - room / 2, y: 7, width: room, height: 46, rx: 9 });
    make(c.svg, 'text', { class: 'head-name', x, y: 26 }, clip(end.name, room - 16, '650 13px'));
    make(c.svg, 'text', { class: 'head-sub', x, y: 44 }, clip(end.about, room - 12, '12px'));
  });
}

// Draws rows top to bottom into an empty svg. Returns how many arrows and events it drew.
function drawWindow(svg, width, height, top, bottom, y) {
  const c = canvas(svg, width, top, bottom, y, height);
  svg.replaceChildren();
  if (layout.rows) {
    drawRows(c, top);
    c.texts = document.createElementNS(SVG, 'g'); // above all lines, so that they stay legible
    for (const n of arrowsAt(top, bottom, MAX_ARROWS))
      drawArrow(c, n);
    svg.append(c.texts);
    for (let row = top; row <= bottom; row++)
      if (layout.moments[row].kind === ROW_EVENT)
        drawEvent(c, row);
  } else
    make(svg, 'text', { x: GUTTER + 20, y: HEAD + 40 }, 'Nothing is left to show: press a button above to show it again.');
  drawHeads(c);
}

// ---- the window that is scrolled ----

const viewHeight = () => scroller.clientHeight - HEAD;
const contentHeight = () => layout.rows * draw.rowHeight + 40;
const scrollHeight = () => Math.min(contentHeight(), MAX_SCROLL);

// Of very many rows a pixel of the scroll bar is more than one of the drawing.
function offset() {
  const range = scrollHeight() - viewHeight(), real = contentHeight() - viewHeight();
  return range <= 0 ? 0 : Math.min(scroller.scrollTop, range) * real / range;
}

function setOffset(y) {
  const range = scrollHeight() - viewHeight(), real = contentHeight() - viewHeight();
  scroller.scrollTop = real <= 0 ? 0 : y * range / real;
}

function drawStage() {
  const width = scroller.clientWidth, height = scroller.clientHeight, at = offset();
  const top = Math.max(0, Math.floor(at / draw.rowHeight) - 1);
  const bottom = Math.min(layout.rows - 1, Math.ceil((at + height) / draw.rowHeight));
  spacer.style.height = scrollHeight() + HEAD + 'px';
  stage.setAttribute('width', width);
  stage.setAttribute('height', height);
  drawWindow(stage, width, height, top, bottom, HEAD + 10 + top * draw.rowHeight - at);
  draw.drawn = stage.getElementsByTagName('*').length;
}

let waiting = false;
function redraw() {
  if (waiting)
    return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawStage();
  });
}

function showRow(row) {
  const y = row * draw.rowHeight, at = offset();
  if (y < at + draw.rowHeight || y > at + viewHeight() - 3 * draw.rowHeight)
    setOffset(Math.max(0, y - viewHeight() / 3));
  redraw();
}
