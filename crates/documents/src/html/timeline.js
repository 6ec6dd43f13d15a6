// The timeline: its lanes, what is in view, and drawing.
//
// Each row of a lane holds series sorted by time. A frame visits few bars per column of pixels: it
// finds the first one in view by binary search and merges those that begin in the same column.

const ROW = 16;
const AXIS = 34;
// Bars narrower than this many pixels are merged.
const COLUMN = 2;
// What is in view, in nanoseconds, between the limits `least` and `most`.
const view = { from: 0, to: 1, least: 0, most: 1 };
const timeline = { canvas: null, context: null, lanes: [], rows: [], width: 0, height: 0,
  gutter: 0, axis: [], colours: {}, patterns: {}, drawn: false, milliseconds: 0, scheduled: false };

// ---- Lanes ----

// The first index in the ascending `values` with a value of at least `wanted`.
function lowerBound(values, wanted, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

const wholeTime = (record) => [record.begins, record.ends];
const queuedTime = (record) => [record.called ?? record.queued, record.queued];

// `reach` is the latest end so far, `busy` the sum of the durations before each bar.
function makeSeries(category, records, timeOf) {
  const sorted = records.slice().sort((left, right) => timeOf(left)[0] - timeOf(right)[0]);
  const count = sorted.length;
  const series = { category, count, indexes: new Int32Array(count), starts: new Float64Array(count),
    ends: new Float64Array(count), reach: new Float64Array(count),
    busy: new Float64Array(count + 1) };
  let reach = -Infinity;
  sorted.forEach((record, place) => {
    const [begins, ends] = timeOf(record);
    reach = Math.max(reach, ends);
    series.indexes[place] = record.index;
    series.starts[place] = begins;
    series.ends[place] = ends;
    series.reach[place] = reach;
    series.busy[place + 1] = series.busy[place] + ends - begins;
  });
  return series;
}

function gather(records, keyOf) {
  const groups = new Map();
  for (const record of records) {
    const key = keyOf(record);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(record);
  }
  return groups;
}

function makeRow(caption, records, timeOf = wholeTime) {
  const groups = gather(records, categoryOf);
  const series = CATEGORIES.filter((category) => groups.has(category))
    .map((category) => makeSeries(category, groups.get(category), timeOf));
  // Merged columns of several kinds stand above each other, so that none hides another.
  series.forEach((each, place) => {
    each.height = ROW / series.length;
    each.shift = place * each.height;
  });
  return { caption, series, top: 0 };
}

const CATEGORIES = ["launch", "wait", "to_device", "to_host", "between_devices", "other"];
const compareText = new Intl.Collator("en", { numeric: true }).compare;
const streamKey = (record) => `${record.device ?? ""}\u0000${record.stream ?? ""}`;

function streamLanes(records) {
  const placed = records.filter((record) => record.kind === "launch" || record.kind === "copy");
  const groups = [...gather(placed, streamKey)].sort(([left], [right]) => compareText(left, right));
  return groups.map(([, members]) => {
    const [launches, copies] = ["launch", "copy"].map((kind) => members.filter((record) =>
      record.kind === kind));
    const rows = [makeRow("kernels", launches), makeRow("copies", copies)];
    return lane("Streams of devices", placeText(members[0]), rows);
  });
}

// Spreads copies that overlap over at most three rows; the last one takes what is left.
function stacked(records) {
  const rows = [];
  const ends = [];
  for (const record of records.slice().sort((left, right) => left.begins - right.begins)) {
    let row = ends.findIndex((end) => end <= record.begins);
    if (row < 0) row = Math.min(ends.length, 2);
    (rows[row] ??= []).push(record);
    ends[row] = Math.max(ends[row] ?? 0, record.ends);
  }
  return rows;
}

function linkLanes(records) {
  return [...DIRECTIONS].map(([direction, { label }]) => {
    const copies = records.filter((record) => record.kind === "copy"
      && record.direction === direction);
    return lane("All copies", label, stacked(copies).map((row) => makeRow("", row)));
  });
}

function threadLanes(records) {
  const groups = [...gather(records, (record) => record.thread ?? "")];
  return groups.sort(([left], [right]) => compareText(left, right)).map(([thread, members]) => {
    const isPeer = (record) => record.kind === "message" || record.kind === "barrier";
    const waits = members.filter((record) => record.kind === "wait");
    const peers = members.filter(isPeer);
    const queued = members.filter((record) => record.kind !== "wait" && !isPeer(record));
    return lane("Host threads", nameText(thread, 28), [makeRow("waits", waits),
      makeRow("messages", peers), makeRow("queueing", queued, queuedTime)]);
  });
}

function lane(group, label, rows) {
  return { group, label, rows: rows.filter((row) => row.series.length > 0), top: 0, height: 0 };
}

function buildLanes(records) {
  const lanes = [...streamLanes(records), ...linkLanes(records), ...threadLanes(records)]
    .filter((each) => each.rows.length > 0);
  timeline.lanes = lanes;
  timeline.rows = lanes.flatMap((each) => each.rows);
}

// On a narrow screen a lane's label stands above its rows, else beside them.
function placeLanes() {
  let top = AXIS;
  let group = "";
  for (const each of timeline.lanes) {
    each.opens = each.group !== group;
    group = each.group;
    each.top = top + (each.opens ? 18 : 0);
    let rowTop = each.top + (timeline.gutter > 0 ? 5 : 17);
    for (const row of each.rows) {
      row.top = rowTop;
      rowTop += ROW + 2;
    }
    each.height = rowTop + 3 - each.top;
    top = each.top + each.height;
  }
  return Math.max(top + 2, AXIS + 60);
}

// ---- View ----

const scale = () => (timeline.width - timeline.gutter) / (view.to - view.from);
const xOf = (time) => timeline.gutter + (time - view.from) * scale();
const timeAt = (x) => view.from + (x - timeline.gutter) / scale();

function setView(from, to) {
  const whole = view.most - view.least;
  const span = Math.min(whole, Math.max(to - from, Math.min(whole, 20)));
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(middle - span / 2, view.least), view.most - span);
  view.to = view.from + span;
  requestDraw();
}

function zoom(factor, around = (view.from + view.to) / 2) {
  const limited = Math.max(factor, 20 / (view.to - view.from));
  setView(around - (around - view.from) * limited, around + (view.to - around) * limited);
}

function move(share) {
  const shift = share * (view.to - view.from);
  const kept = Math.min(Math.max(shift, view.least - view.from), view.most - view.to);
  setView(view.from + kept, view.to + kept);
}

// Goes there in a few frames, or at once for people who asked for less motion.
function glideTo(from, to) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return setView(from, to);
  const begin = { from: view.from, to: view.to, time: performance.now() };
  const step = (now) => {
    const done = Math.min(1, Math.max(0, (now - begin.time) / 160));
    const eased = 1 - (1 - done) ** 3;
    setView(begin.from + (from - begin.from) * eased, begin.to + (to - begin.to) * eased);
    if (done < 1) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

function zoomTo(record) {
  const span = Math.max((record.ends - record.begins) * 4, (view.most - view.least) / 1000, 40);
  const middle = (record.begins + record.ends) / 2;
  glideTo(middle - span / 2, middle + span / 2);
}

// Brings a record into view without changing the zoom.
function reveal(record) {
  const span = view.to - view.from;
  if (record.ends < view.from || record.begins > view.to) {
    const middle = (record.begins + Math.min(record.ends, record.begins + span)) / 2;
    setView(middle - span / 2, middle + span / 2);
  }
  const row = placesOf(record.index)[0];
  const host = byId("lanes");
  if (row === undefined || host.scrollHeight <= host.clientHeight) return;
  const outside = row.top < host.scrollTop + AXIS
    || row.top + ROW > host.scrollTop + host.clientHeight;
  if (outside) host.scrollTop = row.top - host.clientHeight / 2;
}

// ---- Drawing ----

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = { to_device: "--to-device", to_host: "--to-host", between_devices: "--between",
    launch: "--launch", wait: "--wait", other: "--other", text: "--text", muted: "--muted",
    line: "--line", surface: "--surface", band: "--band", accent: "--accent", onBar: "--on-bar" };
  for (const [key, name] of Object.entries(names)) {
    timeline.colours[key] = style.getPropertyValue(name).trim();
  }
  timeline.patterns = { to_host: stripes([[0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6]]),
    between_devices: stripes([[0, 4, 8, 4]]), wait: stripes([[4, 0, 4, 8]]) };
}

// Thin lines over the colour of a bar, so that colour alone never tells kinds apart.
function stripes(lines) {
  const tile = make("canvas", { width: 8, height: 8 });
  const context = tile.getContext("2d");
  context.strokeStyle = timeline.colours.surface;
  context.globalAlpha = 0.32;
  for (const [fromX, fromY, toX, toY] of lines) {
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.lineTo(toX, toY);
    context.stroke();
  }
  return timeline.context.createPattern(tile, "repeat");
}

function requestDraw() {
  if (timeline.scheduled) return;
  timeline.scheduled = true;
  requestAnimationFrame(() => {
    timeline.scheduled = false;
    const begin = performance.now();
    timeline.axis = [];
    drawTimeline();
    drawChart();
    timeline.milliseconds = performance.now() - begin;
  });
}

function fitCanvas(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  canvas.getContext("2d", { alpha: false }).setTransform(ratio, 0, 0, ratio, 0, 0);
}

function resize() {
  const host = byId("lanes");
  timeline.width = host.clientWidth;
  timeline.gutter = timeline.width >= 640 ? 196 : 0;
  const whole = placeLanes();
  byId("lane-space").style.height = `${whole}px`;
  timeline.height = Math.min(whole, Math.max(host.clientHeight, 160));
  timeline.width = host.clientWidth;
  fitCanvas(timeline.canvas, timeline.width, timeline.height);
  chart.width = byId("chart").clientWidth;
  fitCanvas(byId("chart"), chart.width, CHART_HEIGHT);
  requestDraw();
}

const FONT = "11px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

// Text on the canvas: isolated, and made to fit.
function put(context, text, x, y, most, align = "left") {
  const letters = Math.floor(most / 6);
  if (letters < 2) return;
  context.textAlign = align;
  context.fillText(`\u2068${shorten(text, letters)}\u2069`, x, y, most);
}

function drawTimeline() {
  const { context, colours, width, height, gutter } = timeline;
  const offset = byId("lanes").scrollTop;
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, width, height);
  context.save();
  context.translate(0, -offset);
  drawLabels();
  context.save();
  context.beginPath();
  context.rect(gutter, AXIS, width - gutter, height + offset);
  context.clip();
  drawGrid(context, AXIS, height + offset);
  for (const row of timeline.rows) {
    if (row.top + ROW < offset || row.top > offset + height) continue;
    for (const series of row.series) drawSeries(series, row.top);
  }
  drawSelection();
  context.restore();
  context.restore();
  context.fillStyle = colours.muted;
  if (timeline.rows.length > 0) return drawAxis();
  put(context, "Nothing was recorded.", gutter + 16, AXIS + 30, width);
  drawAxis();
}

function drawLabels() {
  const { context, colours, width, gutter } = timeline;
  for (const each of timeline.lanes) {
    if (each.opens) {
      context.fillStyle = colours.band;
      context.fillRect(0, each.top - 18, width, 18);
      context.fillStyle = colours.muted;
      put(context, each.group, 8, each.top - 9, width);
    }
    context.fillStyle = colours.line;
    context.fillRect(0, each.top + each.height - 1, width, 1);
    context.fillStyle = colours.text;
    put(context, each.label, 8, each.top + (gutter > 0 ? 13 : 9), gutter > 0 ? 132 : width - 16);
    context.fillStyle = colours.muted;
    if (gutter === 0) continue;
    for (const row of each.rows) put(context, row.caption, gutter - 6, row.top + 8, 56, "right");
  }
}

function tickStep(span, most) {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
  return factor * power;
}

function ticks() {
  const step = Math.max(1, tickStep(view.to - view.from, (timeline.width - timeline.gutter) / 96));
  const times = [];
  const first = Math.ceil(view.from / step);
  for (let place = first; place * step <= view.to; place += 1) times.push(place * step);
  return { step, times };
}

// With as many decimals as neighbouring ticks need to differ.
function tickText(time, step) {
  const rank = time < 1e3 && step < 1e3 ? 0 : Math.min(3, Math.floor(Math.log10(view.to) / 3));
  const unit = 1000 ** rank;
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${(time / unit).toFixed(decimals)} ${["ns", "\u00b5s", "ms", "s"][rank]}`;
}

function drawGrid(context, top, bottom) {
  context.fillStyle = timeline.colours.line;
  for (const time of ticks().times) context.fillRect(Math.round(xOf(time)), top, 1, bottom - top);
}

// The time at a tick, where it is not cut off by the end. Tests read what was written.
function putTick(context, time, step, y) {
  const x = Math.round(xOf(time)) + 4;
  const text = tickText(time, step);
  const right = x + context.measureText(text).width;
  if (x < timeline.gutter || right > timeline.width - 2) return;
  put(context, text, x, y, 92);
  timeline.axis.push({ text, left: x, right });
}

// The track on top shows which part of the capture is in view.
function drawAxis() {
  const { context, colours, width, gutter } = timeline;
  const { step, times } = ticks();
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = colours.band;
  context.fillRect(gutter, 4, width - gutter - 4, 6);
  const [left, right] = [view.from, view.to].map((time) => gutter
    + ((time - view.least) / (view.most - view.least)) * (width - gutter - 4));
  context.fillStyle = colours.accent;
  context.fillRect(left, 4, Math.max(4, right - left), 6);
  context.fillStyle = colours.muted;
  if (gutter > 0) put(context, `in view: ${timeText(view.to - view.from)}`, 8, 22, gutter - 16);
  for (const time of times) {
    const x = Math.round(xOf(time));
    if (x >= gutter) context.fillRect(x, 14, 1, AXIS - 14);
    putTick(context, time, step, 22);
  }
  context.fillStyle = colours.line;
  context.fillRect(0, AXIS - 1, width, 1);
}

function drawSeries(series, top) {
  const last = lowerBound(series.starts, view.to);
  const pending = { left: 0, right: -1, level: 0, drawn: -1, series };
  const context = timeline.context;
  context.fillStyle = timeline.colours[series.category];
  let place = lowerBound(series.reach, view.from);
  while (place < last) {
    const wide = (series.ends[place] - series.starts[place]) * scale() >= COLUMN;
    if (wide) {
      flush(pending, top);
      drawBar(series, place, top);
      place += 1;
    } else {
      place = drawColumn(series, place, last, top, pending);
    }
  }
  flush(pending, top);
}

// Merges the bars that begin in one column; the fuller the column, the stronger its colour.
function drawColumn(series, first, last, top, pending) {
  const x = Math.floor(xOf(series.starts[first]) / COLUMN) * COLUMN;
  const limit = timeAt(x + COLUMN);
  let next = first + 1;
  if (series.starts[next] < limit) next = lowerBound(series.starts, limit, next, last);
  if (series.reach[next - 1] > limit + COLUMN / scale()) next = beforeWide(series, first, next);
  const busy = ((series.busy[next] - series.busy[first]) * scale()) / COLUMN;
  const level = Math.min(3, Math.ceil(Math.max(busy, (next - first) / 8) * 3));
  if (pending.right !== x || pending.level !== level) flush(pending, top, x);
  if (pending.right < 0) pending.left = x;
  pending.right = x + COLUMN;
  pending.level = level;
  return next;
}

// Some bar of this column may be wide: merges only those before the first wide one.
function beforeWide(series, first, next) {
  for (let place = first + 1; place < next; place += 1) {
    if ((series.ends[place] - series.starts[place]) * scale() >= COLUMN) return place;
  }
  return next;
}

// Draws the pending columns. A column by itself has the full height and strength, to be seen.
function flush(pending, top, next = Infinity) {
  if (pending.right < 0) return;
  const context = timeline.context;
  const lone = pending.right - pending.left === COLUMN && pending.left > pending.drawn
    && next > pending.right;
  const { shift, height } = lone ? { shift: 0, height: ROW } : pending.series;
  context.globalAlpha = lone ? 1 : 0.4 + 0.2 * pending.level;
  context.fillRect(pending.left, top + shift, pending.right - pending.left, height);
  context.globalAlpha = 1;
  pending.drawn = pending.right;
  pending.right = -1;
}

function drawBar(series, place, top) {
  const { context, colours, patterns, width, gutter } = timeline;
  const left = Math.max(xOf(series.starts[place]), gutter - 4);
  const right = Math.min(xOf(series.ends[place]), width + 4);
  const extent = Math.max(1, right - left - (right - left > 4 ? 1 : 0));
  context.fillRect(left, top, extent, ROW);
  if (extent < 5) return;
  if (patterns[series.category]) {
    context.fillStyle = patterns[series.category];
    context.fillRect(left, top, extent, ROW);
  }
  if (extent > 26) drawBarText(series, place, left, extent, top);
  context.fillStyle = colours[series.category];
}

function drawBarText(series, place, left, extent, top) {
  const { context, colours } = timeline;
  const text = barText(report.records[series.indexes[place]]);
  const room = Math.min(extent - 8, context.measureText(text).width);
  context.fillStyle = colours[series.category];
  context.fillRect(left + 2, top, room + 5, ROW);
  context.fillStyle = colours.onBar;
  put(context, text, left + 4, top + ROW / 2 + 0.5, extent - 8);
}

function barText(record) {
  if (record.kind === "wait") return `waits for ${nameText(record.device, 24)}`;
  const arrow = record.kind === "copy" ? DIRECTIONS.get(record.direction)?.arrow : null;
  return (arrow ? `${arrow} ` : "") + nameText(record.name, 40);
}
