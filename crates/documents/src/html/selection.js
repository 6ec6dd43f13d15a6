// What is selected in the timeline, and how pointer and keys move, zoom and select.

// ---- Selection ----

function placesOf(index) {
  return timeline.rows.filter((row) => row.series.some((series) => series.indexes.includes(index)));
}

function edgesIn(row, record) {
  const series = row.series.find((each) => each.indexes.includes(record.index));
  const place = series.indexes.indexOf(record.index);
  return [xOf(series.starts[place]), xOf(series.ends[place])];
}

// What is drawn for a selection is found once, not in every frame.
function markSelection(record) {
  const others = record === null ? [] : relatives(record).slice(0, 200);
  timeline.marks = [record, ...others.map((index) => report.records[index])]
    .filter((each) => each !== null).map((each) => ({ record: each, rows: placesOf(each.index) }));
}

function drawSelection() {
  const [chosen, ...others] = timeline.marks ?? [];
  if (chosen === undefined) return;
  const context = timeline.context;
  for (const other of others) {
    if (chosen.rows.length > 0 && other.rows.length > 0) drawArrow(chosen, other);
    for (const row of other.rows.slice(0, 1)) outline(other.record, row, 1.5);
  }
  for (const row of chosen.rows) outline(chosen.record, row, 2.5);
  context.lineWidth = 1;
}

function outline(record, row, thickness) {
  const { context, colours, width, gutter } = timeline;
  const [from, to] = row.caption === "queueing" ? [record.queued, record.queued]
    : [record.begins, record.ends];
  const left = Math.max(Math.floor(xOf(from)), gutter - 6) - 2;
  const right = Math.min(Math.max(xOf(to), xOf(from) + 2), width + 6) + 2;
  context.lineWidth = thickness;
  context.strokeStyle = colours.text;
  context.strokeRect(left, row.top - 1, right - left, ROW + 2);
}

// From the copy, which had to come first, to the launch that needed it.
function drawArrow(chosen, other) {
  const [copy, launch] = chosen.record.kind === "launch" ? [other, chosen] : [chosen, other];
  const middle = xOf((copy.record.begins + copy.record.ends) / 2);
  const to = { x: xOf(launch.record.begins), y: launch.rows[0].top + ROW / 2 };
  const below = copy.rows[0].top > to.y;
  const from = { x: Math.min(middle, to.x - 16), y: copy.rows[0].top + (below ? -1 : ROW + 1) };
  const context = timeline.context;
  context.strokeStyle = timeline.colours.text;
  context.fillStyle = timeline.colours.text;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.quadraticCurveTo(from.x, to.y, to.x - 8, to.y);
  context.stroke();
  context.beginPath();
  context.moveTo(to.x - 2, to.y);
  context.lineTo(to.x - 9, to.y - 4);
  context.lineTo(to.x - 9, to.y + 4);
  context.fill();
}

// Where a record is drawn, in pixels of the window, or null when it is not in view. For tests.
function positionOf(index) {
  const record = report.records[index];
  const row = record === undefined ? undefined : placesOf(index)[0];
  if (row === undefined) return null;
  const box = timeline.canvas.getBoundingClientRect();
  const [left, right] = edgesIn(row, record);
  const x = (Math.max(left, timeline.gutter) + Math.min(right, timeline.width)) / 2;
  const y = row.top + ROW / 2 - byId("lanes").scrollTop;
  if (right < timeline.gutter || left > timeline.width) return null;
  if (y < AXIS || y > timeline.height) return null;
  return { x: box.left + x, y: box.top + y };
}

// ---- Pointer and keys ----

// The record at a point of the canvas: of those near it, the one closest and then the shortest.
function recordAt(x, y, pixels = 4) {
  const inside = y + byId("lanes").scrollTop;
  const row = timeline.rows.find((each) => inside >= each.top - 1 && inside <= each.top + ROW + 1);
  if (row === undefined || x < timeline.gutter || y < AXIS) return null;
  const margin = pixels / scale();
  const best = { index: -1, distance: margin, length: Infinity };
  for (const series of row.series) nearest(series, timeAt(x), margin, best);
  return best.index < 0 ? null : report.records[best.index];
}

function nearest(series, time, margin, best) {
  let place = lowerBound(series.starts, time + margin) - 1;
  // Bars that overlap may hide an old long one far back: the search for it is bounded.
  for (let left = 20000; place >= 0 && left > 0; place -= 1, left -= 1) {
    if (series.reach[place] < time - margin) return;
    const begins = series.starts[place];
    const ends = series.ends[place];
    const distance = Math.max(0, begins - time, time - ends);
    const closer = distance < best.distance
      || (distance === best.distance && ends - begins < best.length);
    if (!closer) continue;
    Object.assign(best, { index: series.indexes[place], distance, length: ends - begins });
  }
}

function showTip(event) {
  const tip = byId("tip");
  const box = timeline.canvas.getBoundingClientRect();
  const record = event === null ? null
    : recordAt(event.clientX - box.left, event.clientY - box.top);
  tip.hidden = record === null;
  if (record === null) return;
  tip.textContent = sentence(record);
  const x = event.clientX - box.left;
  const host = byId("lanes");
  tip.style.left = `${Math.max(4, Math.min(x + 12, timeline.width - tip.offsetWidth - 4))}px`;
  const y = event.clientY - box.top + host.scrollTop + 16;
  const lowest = host.scrollTop + host.clientHeight - tip.offsetHeight - 4;
  tip.style.top = `${y > lowest ? y - tip.offsetHeight - 26 : y}px`;
}

const pointers = new Map();
const drag = { moved: false, track: false };

function pointerDown(event) {
  if (event.button !== 0) return;
  timeline.canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  const box = timeline.canvas.getBoundingClientRect();
  drag.track = event.clientY - box.top < 14;
  drag.moved = pointers.size > 1;
  drag.start = event.clientX;
  if (drag.track) centreOnTrack(event.clientX - box.left);
}

function centreOnTrack(x) {
  const share = (x - timeline.gutter) / (timeline.width - timeline.gutter);
  const middle = view.least + share * (view.most - view.least);
  const half = (view.to - view.from) / 2;
  setView(middle - half, middle + half);
}

function pointerMove(event) {
  const before = pointers.get(event.pointerId);
  if (before === undefined) return showTip(event.pointerType === "mouse" ? event : null);
  const others = [...pointers].filter(([id]) => id !== event.pointerId);
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  if (Math.abs(event.clientX - drag.start) > 3) drag.moved = true;
  showTip(null);
  const left = timeline.canvas.getBoundingClientRect().left;
  if (drag.track) return centreOnTrack(event.clientX - left);
  if (others.length > 0) return pinch(before.x - left, event.clientX - left, others[0][1].x - left);
  if (!drag.moved) return;
  move((before.x - event.clientX) / (timeline.width - timeline.gutter));
  if (event.pointerType === "mouse") byId("lanes").scrollTop += before.y - event.clientY;
}

// Two fingers: the time under the resting one stays where it is.
function pinch(before, now, resting) {
  const apart = Math.max(12, Math.abs(before - resting));
  zoom(apart / Math.max(12, Math.abs(now - resting)), timeAt(resting));
}

function pointerUp(event) {
  const known = pointers.delete(event.pointerId);
  if (!known || drag.moved || drag.track || event.type === "pointercancel") return;
  const box = timeline.canvas.getBoundingClientRect();
  const pixels = event.pointerType === "touch" ? 14 : 4;
  const record = recordAt(event.clientX - box.left, event.clientY - box.top, pixels);
  if (record !== null) select(record.index);
}

// A page that scrolls under the pointer must not zoom: the wheel zooms after it rested outside.
let scrolledAt = -1000;
function wheel(event) {
  if (event.timeStamp - scrolledAt < 200) return;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const amount = (event.deltaY || event.deltaX) * [1, 16, 100][event.deltaMode];
  const whole = view.to - view.from >= (view.most - view.least) * 0.999;
  if (whole && (sideways || amount > 0)) return;
  event.preventDefault();
  if (sideways) return move((event.deltaX || event.deltaY) / timeline.width);
  const x = event.clientX - timeline.canvas.getBoundingClientRect().left;
  zoom(Math.exp(Math.max(-1, Math.min(1, amount * 0.002))), timeAt(Math.max(x, timeline.gutter)));
}

function step(by) {
  const count = report.records.length;
  if (count === 0) return;
  if (report.selected < 0) return select(middleRecord(by));
  select(Math.min(count - 1, Math.max(0, report.selected + by)));
}

// The first record queued in view, else the nearest one.
function middleRecord() {
  const found = report.records.findIndex((record) => record.ends >= view.from);
  return found < 0 ? report.records.length - 1 : found;
}

function enter() {
  const record = report.records[report.selected];
  if (record !== undefined) return zoomTo(record);
  const middle = (view.from + view.to) / 2;
  const found = report.records.findIndex((each) => each.queued >= middle);
  select(found < 0 ? report.records.length - 1 : found);
}

const showAll = () => glideTo(view.least, view.most);
const ACTIONS = { "zoom-in": () => zoom(0.6), "zoom-out": () => zoom(1 / 0.6),
  earlier: () => move(-0.2), later: () => move(0.2), all: showAll, previous: () => step(-1),
  next: () => step(1) };
const KEYS = { "+": ACTIONS["zoom-in"], "=": ACTIONS["zoom-in"], "-": ACTIONS["zoom-out"],
  "_": ACTIONS["zoom-out"], ArrowLeft: ACTIONS.earlier, ArrowRight: ACTIONS.later, 0: showAll,
  ArrowUp: () => byId("lanes").scrollBy(0, -48), ArrowDown: () => byId("lanes").scrollBy(0, 48),
  Home: () => move(-Infinity), End: () => move(Infinity), n: () => step(1), p: () => step(-1),
  N: () => step(1), P: () => step(-1), Enter: enter, Escape: () => select(-1) };

function key(event) {
  const action = KEYS[event.key];
  if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
}

// ---- Start ----

function limits(records, totals) {
  let [least, most] = [totals.forgotten > 0 && records.length > 0 ? Infinity : 0, totals.duration];
  for (const record of records) {
    least = Math.min(least, record.begins, record.queued);
    most = Math.max(most, record.ends);
  }
  const margin = Math.max(1, (most - least) * 0.005);
  Object.assign(view, { least: Math.max(0, least - margin), most: most + margin });
  Object.assign(view, { from: view.least, to: view.most });
}

function showLegend() {
  const words = { launch: "kernel", to_device: "to devices", to_host: "to the host",
    between_devices: "between devices", wait: "wait",
    other: "memory, messages, other accesses" };
  const used = new Set(report.records.map(categoryOf));
  byId("legend").replaceChildren(...Object.keys(words).filter((key) => used.has(key))
    .map((key) => make("li", {}, swatch(key), words[key])));
}

function listen() {
  const canvas = timeline.canvas;
  canvas.addEventListener("pointerdown", pointerDown);
  canvas.addEventListener("pointermove", pointerMove);
  canvas.addEventListener("pointerup", pointerUp);
  canvas.addEventListener("pointercancel", pointerUp);
  canvas.addEventListener("pointerleave", () => showTip(null));
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("keydown", key);
  addEventListener("scroll", () => { scrolledAt = performance.now(); }, { passive: true });
  byId("lanes").addEventListener("scroll", requestDraw, { passive: true });
  for (const button of document.querySelectorAll("[data-do]")) {
    button.addEventListener("click", ACTIONS[button.dataset.do]);
  }
  new ResizeObserver(resize).observe(byId("lanes"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    requestDraw();
  });
}

function startTimeline() {
  timeline.canvas = byId("timeline");
  timeline.context = timeline.canvas.getContext("2d", { alpha: false });
  timeline.canvas.setAttribute("aria-label",
    `Timeline of ${plural(report.records.length, "record")}`
    + ". The same records are in the table Records at the end of this page.");
  limits(report.records, report.totals);
  buildLanes(report.records);
  startChart();
  readColours();
  showLegend();
  listen();
  resize();
  report.onSelect.push((record) => {
    markSelection(record);
    if (record !== null) reveal(record);
    requestDraw();
  });
  window.residentReport = { positionOf, select, setView, view: () => ({ ...view }),
    selected: () => report.selected, drawMilliseconds: () => timeline.milliseconds,
    axis: () => timeline.axis, width: () => timeline.width,
    lanes: () => timeline.lanes.map((each) => each.label) };
}
