// SPDX-License-Identifier: BSD-2-Clause
// Buttons, keys, search, print.
const $ = id => document.getElementById(id);
const PRINT_ROWS = 2000, PRINT_PAGE = 38, PRINT_WIDTH = 1100, FOLD_FROM = 200;

function rowOfEvent(event) {
  return layout.moments.findIndex(moment => moment.kind === ROW_EVENT && moment.ref === event);
}

function rowOfPacket(i) {
  return layout.moments.findIndex(moment => moment.kind === ROW_START && (layout.arrows[moment.ref].packet === i ||
    (layout.arrows[moment.ref].group >= 0 && layout.arrows[moment.ref].group === groups.of[i])));
}

// Builds the rows again, and keeps the selection and its place on the screen.
function rebuild() {
  const moment = draw.selected >= 0 ? layout.moments[draw.selected] : null;
  const packet = moment && moment.kind !== ROW_EVENT ? layout.arrows[moment.ref].packet : -1;
  const event = moment && moment.kind === ROW_EVENT ? moment.ref : -1;
  const place = draw.selected * draw.rowHeight - offset();
  makeLayout();
  draw.selected = event >= 0 ? rowOfEvent(event) : packet >= 0 ? rowOfPacket(packet) : -1;
  spacer.style.height = scrollHeight() + HEAD + 'px';
  if (draw.selected >= 0) {
    setOffset(draw.selected * draw.rowHeight - place);
    if (!panel.hidden)
      showDetail(draw.selected);
  }
  search();
  showProblems();
  if ($('table-details').open)
    drawTable();
  redraw();
}

function select(row, quiet) {
  if (row < 0 || row >= layout.rows)
    return;
  const moment = layout.moments[row];
  draw.selected = moment.kind === ROW_EVENT || moment.kind === ROW_START ? row : layout.arrows[moment.ref].row0;
  showDetail(draw.selected);
  const { cells } = tableCells(draw.selected);
  $('now').textContent = timeText(layout.moments[draw.selected].time) + ': ' + cells.filter(text => text).join('; ');
  if (!quiet)
    showRow(draw.selected);
  redraw();
}

// The next row that is something, from the selection on; `accept` may refuse rows.
function step(by, accept) {
  let row = draw.selected < 0 ? (by > 0 ? Math.floor(offset() / draw.rowHeight) - 1 : layout.rows) : draw.selected;
  for (row += by; row >= 0 && row < layout.rows; row += by)
    if (accept ? accept(row) : layout.moments[row].kind === ROW_EVENT || layout.moments[row].kind === ROW_START)
      return select(row);
}

function toggle(g) {
  groups.list[g].open = !groups.list[g].open;
  rebuild();
}

function toggleSelected() {
  const moment = draw.selected >= 0 ? layout.moments[draw.selected] : null;
  if (!moment || moment.kind === ROW_EVENT)
    return;
  const g = groups.of[layout.arrows[moment.ref].packet];
  if (g >= 0 && folds(g))
    toggle(g);
}

function setFold(fold) {
  view.fold = fold;
  groups.list.forEach(group => { group.open = false; });
  $('fold').setAttribute('aria-pressed', fold);
  $('unfold').setAttribute('aria-pressed', !fold);
  rebuild();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $('theme').setAttribute('aria-pressed', theme === 'dark');
}

function zoom(factor) {
  const middle = (offset() + viewHeight() / 2) / draw.rowHeight;
  draw.rowHeight = Math.max(6, Math.min(64, Math.round(draw.rowHeight * factor)));
  spacer.style.height = scrollHeight() + HEAD + 'px';
  setOffset(Math.max(0, middle * draw.rowHeight - viewHeight() / 2));
  redraw();
}

// ---- search and problems ----

function search() {
  const text = $('search').value.trim().toLowerCase();
  draw.matches = null;
  $('found').textContent = '';
  if (text) {
    draw.matches = new Set();
    for (let row = 0; row < layout.rows; row++)
      if ((layout.moments[row].kind === ROW_EVENT || layout.moments[row].kind === ROW_START) && rowHas(row, text))
        draw.matches.add(row);
    $('found').textContent = draw.matches.size ? countText(draw.matches.size, 'row', 'rows') : 'nothing';
  }
  redraw();
}

function showProblems() {
  const n = problemRows().length;
  $('next-problem').textContent = n ? '⚠ ' + countText(n, 'problem', 'problems') : '✓ no problems';
  $('next-problem').classList.toggle('bad', n > 0);
  $('next-problem').disabled = !n;
}

function nextProblem(by) {
  const rows = problemRows(), at = draw.selected;
  const next = by > 0 ? rows.find(row => row > at) : rows.filter(row => row < at).pop();
  if (rows.length)
    select(next === undefined ? rows[by > 0 ? 0 : rows.length - 1] : next);
}

// ---- what is above the picture ----

function countFlags(bits) {
  let n = 0;
  for (let i = 0; i < packetCount; i++)
    n += (packets.flags[i] & bits) !== 0;
  return n;
}

function summarize() {
  const summary = $('summary'), parts = [];
  const lost = countFlags(LOST), again = countFlags(AGAIN), failed = events.bad.filter(bad => bad === 2).length + countFlags(BAD);
  parts.push([countText(data.ends.length, 'end', 'ends')], [countText(packetCount, 'packet', 'packets')], [countText(messages.length, 'message', 'messages')],
    [spanText(packetCount || eventCount ? Math.max(...[packets.t, events.t].map(t => t.length ? t[t.length - 1] : 0)) : 0)]);
  if (lost) parts.push([lost.toLocaleString('en') + ' lost', 'bad']);
  if (again) parts.push([again.toLocaleString('en') + ' sent again', 'warn']);
  if (failed) parts.push([countText(failed, 'error', 'errors'), 'bad']);
  parts.forEach(([text, cls], n) => {
    if (n)
      summary.append(' · ');
    put(summary, 'span', text, cls);
  });
  $('title').textContent = data.title;
  document.title = data.title + ' · RDMA ladder';
  data.notes.forEach(note => put($('notes'), 'p', note));
}

function switchButton(parent, text, title, hidden, key) {
  const button = put(parent, 'button');
  button.title = title;
  button.append(text);
  button.setAttribute('aria-pressed', 'true');
  button.addEventListener('click', () => {
    const now = !hidden.delete(key);
    if (now)
      hidden.add(key);
    button.setAttribute('aria-pressed', !now);
    rebuild();
  });
  return button;
}

function makeSwitches() {
  switchButton($('kinds'), 'Posts and completions', 'Show or hide what the programs do', view.hidden, 'work');
  switchButton($('kinds'), 'Acknowledgements', 'Show or hide ACKs; NAKs stay', view.hidden, 'acks');
  switchButton($('kinds'), 'Connection', 'Show or hide how the connection is made and ended', view.hidden, 'connection');
  data.conversations.forEach((conversation, c) => {
    if (!conversation.used || conversation.color < 0 || conversation.color > 11)
      return;
    const button = switchButton($('legend'), conversation.name, 'Show or hide this pair of QPs', view.hiddenConversations, c);
    const line = document.createElement('i');
    line.style.background = conversationColor(c);
    button.prepend(line);
  });
}

// ---- pointer and keys ----

const targetOf = event => event.target.closest && event.target.closest('[data-arrow], [data-event]');
const rowOfTarget = target => target.dataset.event !== undefined ? rowOfEvent(+target.dataset.event) : layout.arrows[+target.dataset.arrow].row0;

function listen() {
  scroller.addEventListener('scroll', redraw, { passive: true });
  new ResizeObserver(redraw).observe(scroller);
  stage.addEventListener('pointermove', event => showTip(targetOf(event), event.clientX, event.clientY));
  stage.addEventListener('pointerleave', () => showTip(null));
  stage.addEventListener('click', event => {
    const target = targetOf(event);
    if (target)
      select(rowOfTarget(target), true);
  });
  stage.addEventListener('dblclick', toggleSelected);
  scroller.addEventListener('wheel', event => {
    if (!event.ctrlKey)
      return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
  }, { passive: false });
  $('fold').addEventListener('click', () => setFold(true));
  $('unfold').addEventListener('click', () => setFold(false));
  $('larger').addEventListener('click', () => zoom(1.25));
  $('smaller').addEventListener('click', () => zoom(0.8));
  $('theme').addEventListener('click', switchTheme);
  $('help').addEventListener('click', showGuide);
  $('close').addEventListener('click', closePanel);
  $('next-problem').addEventListener('click', () => nextProblem(1));
  $('search').addEventListener('input', search);
  $('page-back').addEventListener('click', () => { table.page--; drawTable(); });
  $('page-on').addEventListener('click', () => { table.page++; drawTable(); });
  $('table-details').addEventListener('toggle', () => $('table-details').open && drawTable());
  document.querySelector('.skip').addEventListener('click', () => { $('table-details').open = true; });
  document.addEventListener('keydown', onKey);
  addEventListener('beforeprint', makePrint);
  addEventListener('afterprint', () => $('print').replaceChildren());
}

function switchTheme() {
  setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
}

// In a narrow window the panel would cover the guide.
function showGuide() {
  $('guide').hidden = !$('guide').hidden;
  $('help').setAttribute('aria-expanded', !$('guide').hidden);
  if (!$('guide').hidden && getComputedStyle(panel).position === 'fixed')
    panel.hidden = true;
}

function closePanel() {
  panel.hidden = true;
  scroller.focus();
  redraw();
}

const KEYS = {
  ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1), Enter: toggleSelected,
  Home: () => select(0), End: () => select(layout.rows - 1),
  n: () => nextProblem(1), N: () => nextProblem(-1), f: () => setFold(true), e: () => setFold(false), t: switchTheme, '?': showGuide,
  '+': () => zoom(1.25), '=': () => zoom(1.25), '-': () => zoom(0.8), '/': () => $('search').focus(), Escape: closePanel,
};

function onSearchKey(event) {
  if (event.key === 'Escape') {
    $('search').value = '';
    search();
    scroller.focus();
  } else if (event.key === 'Enter' && draw.matches && draw.matches.size)
    step(event.shiftKey ? -1 : 1, row => draw.matches.has(row));
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey)
    return;
  if (event.target === $('search'))
    return onSearchKey(event);
  const inTable = $('table').contains(event.target);
  const key = KEYS[event.key];
  if (!key || (event.key === 'Enter' && event.target.tagName === 'BUTTON') || (inTable && event.key !== 'Escape'))
    return;
  event.preventDefault();
  key();
}

// ---- print: pages of rows, one drawing each ----

function makePrint() {
  const print = $('print'), height = draw.rowHeight, rows = Math.min(layout.rows, PRINT_ROWS);
  print.replaceChildren();
  draw.rowHeight = 24;
  for (let top = 0; top < rows; top += PRINT_PAGE) {
    const bottom = Math.min(rows, top + PRINT_PAGE) - 1, tall = HEAD + 20 + (bottom - top + 1) * draw.rowHeight;
    const svg = make(print, 'svg', { viewBox: `0 0 ${PRINT_WIDTH} ${tall}` });
    drawWindow(svg, PRINT_WIDTH, tall, top, bottom, HEAD + 10);
  }
  if (rows < layout.rows)
    put(print, 'p', `The first ${countText(rows, 'row', 'rows')} of ${layout.rows.toLocaleString('en')}. Fold messages, or hide some, to print more of the story.`);
  draw.rowHeight = height;
}

// ---- begin ----

setTheme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
summarize();
makeSwitches();
view.fold = packetCount > FOLD_FROM;
$('fold').setAttribute('aria-pressed', view.fold);
$('unfold').setAttribute('aria-pressed', !view.fold);
makeLayout();
showProblems();
listen();
drawStage();
