// SPDX-License-Identifier: BSD-2-Clause
// Draws what `roci perf` measured. D3 has the scales, axes and the brush.
var data = JSON.parse(document.getElementById('data').textContent);
// A narrow window, as of a phone, gets narrow charts: each is in sight as a whole, and its numbers are as large.
var root = document.documentElement, WIDTH = Math.max(320, Math.min(1100, root.clientWidth - 76)), HEIGHT = 380, MARGIN = {top: 14, right: 22, bottom: 48, left: 92};
var INNER = {width: WIDTH - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom};

root.style.setProperty('--least', Math.round(WIDTH * 0.73) + 'px'); // in a window that is made narrower a chart scrolls: its numbers stay legible

// ---- light and dark ----

var dark = window.matchMedia('(prefers-color-scheme: dark)');
function theme(on) { root.dataset.theme = on ? 'dark' : 'light'; }
theme(dark.matches);
dark.addEventListener('change', function () { theme(dark.matches); });
document.getElementById('theme').onclick = function () { theme(root.dataset.theme !== 'dark'); };
var shown;
window.addEventListener('beforeprint', function () { shown = root.dataset.theme; theme(false); });
window.addEventListener('afterprint', function () { root.dataset.theme = shown; });

// ---- numbers for people ----

function three(value) {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toPrecision(3);
}
function scaled(value, units, base) {
  var unit = 0;
  while (value >= base * 0.9995 && unit < units.length - 1) { value /= base; unit++; }
  return (value === 0 ? '0' : three(value)) + ' ' + units[unit];
}
function bits(bytesPerSecond) { return scaled(bytesPerSecond * 8, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'], 1000); }
function time(ns) { return scaled(ns, ['ns', 'µs', 'ms', 's'], 1000); }
function rate(perSecond) { return scaled(perSecond, ['/s', 'k/s', 'M/s', 'G/s'], 1000); }
function size(bytes) {
  return bytes >= 1048576 && bytes % 1048576 === 0 ? bytes / 1048576 + ' MiB'
    : bytes >= 1024 && bytes % 1024 === 0 ? bytes / 1024 + ' KiB' : bytes + ' B';
}
function percent(p) { return p >= 100 ? '100 %' : String(parseFloat(p.toFixed(4))) + ' %'; }
// For an axis: 10 µs, not 10.0 µs.
function plainly(format) { return function (value) { return format(value).replace(/(\.\d*?)0+(?= )/, '$1').replace(/\.(?= )/, ''); }; }

// ---- a chart ----

function svg(parent, width, height) {
  return parent.append('svg').attr('viewBox', '0 0 ' + width + ' ' + height).attr('preserveAspectRatio', 'xMidYMid meet');
}

// The ticks of a logarithmic scale: powers of ten, with 2 and 5 where few of them are in sight.
function logTicks(domain) {
  var ticks = [], steps = domain[1] / domain[0] > 2000 ? [1] : [1, 2, 5];
  for (var power = Math.floor(Math.log(domain[0]) / Math.LN10); Math.pow(10, power) <= domain[1]; power++) {
    steps.forEach(function (step) {
      var tick = step * Math.pow(10, power);
      if (tick >= domain[0] * 0.999 && tick <= domain[1] * 1.001) { ticks.push(tick); }
    });
  }
  return ticks;
}

// Those of the ticks of an x axis whose numbers have room beside each other; the last one has.
function withRoom(ticks, x) {
  var last = Infinity;
  return ticks.slice().reverse().filter(function (tick) {
    var room = last - x(tick) >= 54;
    if (room) { last = x(tick); }
    return room;
  }).reverse();
}

// o: title, text, series [{name, color, tcp, hidden, points [[x, y]]}], x and y: {scale, label, format, ticks(domain), domain}
function chart(o) {
  var hidden = {}, figure = d3.select('#charts').append('figure').attr('id', o.id);
  var caption = figure.append('figcaption'), heading = caption.append('div');
  heading.append('h2').text(o.title);
  heading.append('p').text(o.text);
  var reset = caption.append('button').attr('class', 'reset').attr('hidden', '').text('Show all').on('click', all);
  var legend = figure.append('div').attr('class', 'legend');
  var plot = figure.append('div').attr('class', 'plot'), tip = plot.append('div').attr('class', 'tip').attr('hidden', '');
  var picture = svg(plot, WIDTH, HEIGHT).attr('role', 'img').attr('aria-label', o.title + '. The figures are in the tables below.');
  var area = picture.append('g').attr('transform', 'translate(' + MARGIN.left + ',' + MARGIN.top + ')');
  var clip = 'clip-' + o.id;
  picture.append('clipPath').attr('id', clip).append('rect').attr('x', -6).attr('y', -6).attr('width', INNER.width + 12).attr('height', INNER.height + 12);
  var xAxis = area.append('g').attr('class', 'axis x').attr('transform', 'translate(0,' + INNER.height + ')');
  var yAxis = area.append('g').attr('class', 'axis y');
  area.append('text').attr('class', 'label').attr('x', INNER.width).attr('y', INNER.height + 42).attr('text-anchor', 'end').text(o.x.label);
  var cross = area.append('line').attr('class', 'cross').attr('y1', 0).attr('y2', INNER.height).attr('visibility', 'hidden');
  var lines = area.append('g').attr('clip-path', 'url(#' + clip + ')');
  var x = o.x.scale.domain(o.x.domain).range([0, INNER.width]), y = o.y.scale.range([INNER.height, 0]);
  var brush = d3.svg.brush().x(x).on('brushend', zoom);
  var touch = area.append('g').attr('class', 'brush').call(brush);
  touch.selectAll('rect').attr('height', INNER.height);
  touch.on('mousemove', hover).on('mouseleave', leave).on('dblclick', all);
  o.series.forEach(function (series) {
    hidden[series.name] = Boolean(series.hidden);
    var button = legend.append('button').attr('aria-pressed', String(!series.hidden)).on('click', function () {
      hidden[series.name] = !hidden[series.name];
      button.attr('aria-pressed', String(!hidden[series.name]));
      draw();
    });
    svg(button, 26, 10).attr('aria-hidden', 'true').append('path').attr('d', 'M1,5H25').attr('class', 'series' + (series.tcp ? ' tcp' : ''))
      .style('stroke', series.color);
    button.append('span').text(series.name);
  });
  if (o.series.length < 2) { legend.attr('hidden', ''); }
  draw();
  window.addEventListener('keydown', function (event) { if (event.key === 'Escape') { all(); } });

  function visible() { return o.series.filter(function (series) { return !hidden[series.name]; }); }

  function inSight() {
    var d = x.domain(), points = [];
    visible().forEach(function (series) {
      series.points.forEach(function (p) { if (p[0] >= d[0] && p[0] <= d[1]) { points.push(p[1]); } });
    });
    return points.length ? d3.extent(points) : null;
  }

  function draw() {
    var sight = inSight();
    if (sight) { y.domain(o.y.domain(sight)); }
    xAxis.call(d3.svg.axis().scale(x).orient('bottom').tickSize(-INNER.height, 0).tickPadding(9).tickValues(withRoom(o.x.ticks(x.domain()), x)).tickFormat(o.x.format));
    yAxis.call(d3.svg.axis().scale(y).orient('left').tickSize(-INNER.width, 0).tickPadding(9).tickValues(o.y.ticks(y.domain())).tickFormat(o.y.format));
    var line = d3.svg.line().x(function (p) { return x(p[0]); }).y(function (p) { return y(p[1]); });
    if (o.step) { line.interpolate('step-before'); }
    var path = lines.selectAll('path').data(visible(), function (series) { return series.name; });
    path.enter().append('path').attr('class', function (series) { return 'series' + (series.tcp ? ' tcp' : ''); })
      .style('stroke', function (series) { return series.color; });
    path.attr('d', function (series) { return line(series.points); });
    path.exit().remove();
    var dots = [];
    if (o.dots) {
      visible().forEach(function (series) { series.points.forEach(function (p) { dots.push([p[0], p[1], series.color]); }); });
    }
    var dot = lines.selectAll('circle').data(dots);
    dot.enter().append('circle').attr('class', 'dot').attr('r', 4.5);
    dot.attr('cx', function (d) { return x(d[0]); }).attr('cy', function (d) { return y(d[1]); }).style('fill', function (d) { return d[2]; });
    dot.exit().remove();
  }

  function zoom() {
    if (brush.empty()) { return; }
    x.domain(brush.extent());
    touch.call(brush.clear());
    reset.attr('hidden', null);
    leave();
    draw();
  }

  function all() {
    x.domain(o.x.domain);
    touch.call(brush.clear());
    reset.attr('hidden', '');
    draw();
  }

  // The point of a line that is nearest to a place.
  function nearest(series, at) {
    return series.points.reduce(function (best, p) {
      return !best || Math.abs(x(p[0]) - at) < Math.abs(x(best[0]) - at) ? p : best;
    }, null);
  }

  function hover() {
    var at = d3.mouse(area.node())[0], rows = visible().map(function (series) { return {series: series, point: nearest(series, at)}; })
      .filter(function (row) { return row.point; });
    if (!rows.length) { leave(); return; }
    var place = rows.reduce(function (best, row) {
      return best === null || Math.abs(x(row.point[0]) - at) < Math.abs(x(best) - at) ? row.point[0] : best;
    }, null);
    cross.attr('x1', x(place)).attr('x2', x(place)).attr('visibility', null);
    tip.attr('hidden', null).html('');
    tip.append('strong').text(o.x.name(place));
    var row = tip.append('table').selectAll('tr').data(rows).enter().append('tr');
    row.append('td').text(function (r) { return r.series.name; }).style('color', function (r) { return r.series.color; });
    row.append('td').text(function (r) { return o.y.name(r.point[1]); });
    var box = plot.select('svg').node().getBoundingClientRect(), factor = box.width / WIDTH, left = (MARGIN.left + x(place)) * factor;
    var width = tip.node().offsetWidth;
    tip.style('left', (left + width + 24 > box.width ? left - width - 14 : left + 14) + 'px').style('top', '16px');
  }

  function leave() {
    tip.attr('hidden', '');
    cross.attr('visibility', 'hidden');
  }
}

// ---- what there is to draw ----

function rows(phase) { return data.rows.filter(function (row) { return row.phase === phase; }); }
function color(i) { return 'var(--c' + i % 8 + ')'; }
var sizes = [];
data.rows.forEach(function (row) { if (sizes.indexOf(row.bytes) < 0) { sizes.push(row.bytes); } });
sizes.sort(function (a, b) { return a - b; });
function sizeColor(bytes) { return color(sizes.indexOf(bytes)); }

// Of many sizes, a few are shown at first: their places in the list are spread evenly.
var MOST = 5, few = {};
for (var i = 0; i < Math.min(sizes.length, MOST); i++) {
  few[sizes[sizes.length > MOST ? Math.round(i * (sizes.length - 1) / (MOST - 1)) : i]] = true;
}

function linear(count) { return function (domain) { return d3.scale.linear().domain(domain).ticks(count); }; }
function fromZero(extent) { return [0, extent[1] * 1.06 || 1]; }
function logAround(extent) { return [extent[0] * 0.85, extent[1] * 1.18]; }
var sizeAxis = {
  label: 'size of a message', name: size, format: size,
  ticks: function (domain) { return sizes.filter(function (s) { return s >= domain[0] && s <= domain[1]; }); },
};
function sizeScale() { return d3.scale.log().base(2); }
function sizeDomain() { return [sizes[0] / 1.25, sizes[sizes.length - 1] * 1.25]; }

// values: [what, function of a row], a line for each, of RDMA and of TCP.
function overSizes(id, title, text, values, y) {
  var series = [];
  values.forEach(function (value, v) {
    [[data.op, y.phase, false], ['TCP', 'tcp-' + y.phase, true]].forEach(function (kind, i) {
      var points = rows(kind[1]).map(function (row) { return [row.bytes, value[1](row)]; }).sort(function (a, b) { return a[0] - b[0]; });
      if (points.length) { series.push({name: kind[0] + value[0], color: color((i ? 2 : 0) + v), tcp: kind[2], points: points}); }
    });
  });
  if (!series.length || series[0].points.length < 2) { return; }
  chart({id: id, title: title, text: text, series: series, dots: true, y: y,
    x: {scale: sizeScale(), domain: sizeDomain(), label: sizeAxis.label, name: sizeAxis.name, format: sizeAxis.format, ticks: sizeAxis.ticks}});
}

overSizes('bandwidth', 'Bandwidth', data.bidir ? 'sum of both directions; higher is better' : 'higher is better',
  [['', function (row) { return row.bytes_per_s; }]],
  {phase: 'bandwidth', scale: d3.scale.linear(), domain: fromZero, ticks: linear(6), format: plainly(bits), name: bits});
overSizes('messages', 'Message rate', 'higher is better',
  [['', function (row) { return row.messages_per_s; }]],
  {phase: 'bandwidth', scale: d3.scale.linear(), domain: fromZero, ticks: linear(6), format: plainly(rate), name: rate});

overSizes('latency-sizes', 'Latency over sizes', data.latency_is + '; lower is better',
  [[', median', function (row) { return row.percentiles_ns['50']; }], [', 99 %', function (row) { return row.percentiles_ns['99']; }]],
  {phase: 'latency', scale: d3.scale.log(), domain: logAround, ticks: logTicks, format: plainly(time), name: time});

// Percentiles as HdrHistogram's viewers have them: each nine has the same room.
function toNines(p) { return Math.log(100 / (100 - p)) / Math.LN10; }
function fromNines(n) { return 100 - 100 / Math.pow(10, n); }
var distributions = rows('latency').concat(rows('tcp-latency')).filter(function (row) { return row.distribution.length; });
if (distributions.length) {
  var most = d3.max(distributions, function (row) { return toNines(row.distribution[row.distribution.length - 1][0]); });
  chart({id: 'latency', title: 'Distribution of latency', text: data.latency_is + '; so many messages were as fast as this or faster',
    series: distributions.map(function (row) {
      var tcp = row.phase !== 'latency';
      return {name: (tcp ? 'TCP ' : '') + size(row.bytes), color: sizeColor(row.bytes), tcp: tcp, hidden: !few[row.bytes],
        points: row.distribution.map(function (p) { return [toNines(p[0]), p[1]]; })};
    }),
    x: {scale: d3.scale.linear(), domain: [0, Math.max(most, 2)], label: 'part of the messages', format: function (n) { return percent(fromNines(n)); },
      name: function (n) { return percent(fromNines(n)); },
      ticks: function (domain) {
        return [0, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999].map(toNines)
          .filter(function (n) { return n >= domain[0] - 1e-9 && n <= domain[1] + 1e-9; });
      }},
    y: {scale: d3.scale.log(), domain: logAround, ticks: logTicks, format: plainly(time), name: time}});
}

function overTime(id, title, text, phases, value, y) {
  var series = [], end = 0;
  phases.forEach(function (phase) {
    rows(phase).forEach(function (row) {
      if (row.intervals.length < 2) { return; }
      end = Math.max(end, row.intervals[row.intervals.length - 1].end_ns / 1e9);
      series.push({name: (phase === phases[0] ? '' : 'TCP ') + size(row.bytes), color: sizeColor(row.bytes), tcp: phase !== phases[0],
        hidden: !few[row.bytes] || (phase !== phases[0] && sizes.length > MOST),
        points: row.intervals.map(function (part, i) {
          var seconds = (part.end_ns - (i ? row.intervals[i - 1].end_ns : 0)) / 1e9;
          return [part.end_ns / 1e9, value(row, part, seconds), seconds];
        }).filter(function (p, i, list) { return i + 1 < list.length || p[2] > list[i - 1][2] / 2; })}); // the last part may be a rest
    });
  });
  if (series.length) {
    chart({id: id, title: title, text: text, series: series, y: y,
      x: {scale: d3.scale.linear(), domain: [0, end], label: 'seconds since the warm-up', format: String, ticks: linear(8),
        name: function (s) { return s.toFixed(3) + ' s'; }}});
  }
}
overTime('bandwidth-time', 'Bandwidth over time', (data.bidir ? 'of this end; ' : '') + 'a steady line is a figure to trust',
  ['bandwidth', 'tcp-bandwidth'], function (row, part, seconds) { return part.messages * row.bytes / seconds; },
  {scale: d3.scale.linear(), domain: fromZero, ticks: linear(6), format: plainly(bits), name: bits});
overTime('latency-time', 'Latency over time', 'the 99th percentile of each part of the time',
  ['latency', 'tcp-latency'], function (row, part) { return part.p99_ns; },
  {scale: d3.scale.log(), domain: logAround, ticks: logTicks, format: plainly(time), name: time});

// ---- words and tables ----

document.title = data.title;
d3.select('#title').text(data.title);
d3.select('#subtitle').text(data.subtitle);
d3.select('#warnings').selectAll('li').data(data.warnings).enter().append('li').text(function (w) { return '! ' + w; });

function table(caption, heads, list, cells) {
  if (!list.length) { return; }
  var t = d3.select('#numbers').append('div').attr('class', 'wide').append('table').attr('class', 'figures');
  t.append('caption').text(caption);
  t.append('thead').append('tr').selectAll('th').data(heads).enter().append('th').attr('scope', 'col').text(String);
  var tr = t.append('tbody').selectAll('tr').data(list).enter().append('tr');
  tr.selectAll('td').data(cells).enter().append('td').text(String);
}
function what(row) { return row.phase.indexOf('tcp') ? data.op : 'TCP'; }
table('Bandwidth', ['size', 'by', 'bandwidth', 'messages', 'CPU s/GB here', 'CPU s/GB there'], rows('bandwidth').concat(rows('tcp-bandwidth')),
  function (row) {
    return [size(row.bytes), what(row), bits(row.bytes_per_s), rate(row.messages_per_s), three(row.near.cpu_s_per_gb), three(row.far.cpu_s_per_gb)];
  });
table('Latency, ' + data.latency_is, ['size', 'by', 'min', '50 %', '90 %', '99 %', '99.9 %', '99.99 %', 'max', 'messages'],
  rows('latency').concat(rows('tcp-latency')), function (row) {
    var p = row.percentiles_ns;
    return [size(row.bytes), what(row)].concat([row.min_ns, p['50'], p['90'], p['99'], p['99.9'], p['99.99'], row.max_ns].map(time), row.messages);
  });
root.dataset.drawn = 'yes';
