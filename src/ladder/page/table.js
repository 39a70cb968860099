// SPDX-License-Identifier: BSD-2-Clause
// The same story as a table, a page of rows at a time.
const PAGE_ROWS = 100;
const table = { page: 0, body: document.getElementById('rows') };

// In a row the name will do, where no other end has it.
const shortName = i => data.ends.filter(end => end.name === data.ends[i].name).length > 1 ? endName(i) : data.ends[i].name;

function tableCells(row) {
  const moment = layout.moments[row];
  if (moment.kind === ROW_EVENT) {
    const i = moment.ref;
    return { cells: [shortName(events.end[i]), '', events.text[i], [events.id[i], data.explanations[events.explain[i]]].filter(text => text).join('. ')],
      cls: events.bad[i] === 2 ? 'bad' : '' };
  }
  const arrow = layout.arrows[moment.ref], i = arrow.packet, folded = arrow.group >= 0;
  const flags = folded ? groups.list[arrow.group].flags : packets.flags[i];
  const what = folded ? groupLabel(arrow.group) : packetLabel(i);
  const meaning = folded ? groupExtra(arrow.group) : [packets.text[i], packetExtra(i), packets.arrived[i] >= 0 ? 'arrives at ' + timeText(packets.arrived[i]) : '',
    data.explanations[packets.explain[i]]].filter(text => text).join('. ');
  return { cells: [shortName(from(i)), shortName(to(i)), what, meaning], cls: flags & (BAD | LOST) ? 'bad' : flags & PROBLEM ? 'warn' : '' };
}

// Arrivals have no row of their own: the departure tells of them.
function tableRows() {
  if (!layout.tableRows) {
    layout.tableRows = [];
    for (let row = 0; row < layout.rows; row++)
      if (layout.moments[row].kind === ROW_EVENT || layout.moments[row].kind === ROW_START)
        layout.tableRows.push(row);
  }
  return layout.tableRows;
}

function drawTable() {
  const rows = tableRows(), pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  table.page = Math.max(0, Math.min(table.page, pages - 1));
  table.body.replaceChildren();
  table.body.parentElement.setAttribute('aria-rowcount', rows.length + 1);
  rows.slice(table.page * PAGE_ROWS, (table.page + 1) * PAGE_ROWS).forEach((row, n) => {
    const { cells, cls } = tableCells(row), tr = put(table.body, 'tr', undefined, cls);
    tr.setAttribute('aria-rowindex', table.page * PAGE_ROWS + n + 2);
    put(tr, 'td', timeText(layout.moments[row].time));
    for (const text of cells)
      put(tr, 'td', text);
  });
  document.getElementById('page-at').textContent = `Page ${table.page + 1} of ${pages}, ${countText(rows.length, 'row', 'rows')}`;
  document.getElementById('page-back').disabled = table.page === 0;
  document.getElementById('page-on').disabled = table.page === pages - 1;
}
