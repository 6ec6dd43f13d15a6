// Bytes over time, and the graph of devices.

// ---- Bytes over time ----

const chart = { flows: [], kind: "interval", context: null, width: 0, timer: 0 };
const CHART_HEIGHT = 150;
const DASHES = { to_device: [], to_host: [7, 3], between_devices: [2, 3] };

// A copy counts at the time at which it was done, as far as that is known.
function makeFlow(direction) {
  const copies = report.records.filter((record) => record.kind === "copy"
    && record.direction === direction).sort((left, right) => left.ends - right.ends);
  const times = Float64Array.from(copies, (copy) => copy.ends);
  const sums = new Float64Array(copies.length + 1);
  copies.forEach((copy, place) => { sums[place + 1] = sums[place] + copy.bytes; });
  return { direction, times, sums };
}

const bytesBefore = (flow, time) => flow.sums[lowerBound(flow.times, time)];

function drawChart() {
  const context = chart.context;
  const { colours, width, gutter } = timeline;
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillStyle = colours.surface;
  context.fillRect(0, 0, chart.width, CHART_HEIGHT);
  context.save();
  context.beginPath();
  context.rect(gutter, 0, width - gutter, CHART_HEIGHT);
  context.clip();
  drawGrid(context, 8, CHART_HEIGHT - 20);
  const most = chart.kind === "interval" ? drawIntervals(context) : drawTotals(context);
  context.restore();
  context.fillStyle = colours.muted;
  if (most === 0) put(context, "No copy in view.", gutter + 16, CHART_HEIGHT / 2, width);
  drawChartAxes(context, most);
}

function heightOf(bytes, most) {
  return most === 0 ? 0 : ((CHART_HEIGHT - 32) * bytes) / most;
}

// Intervals begin at whole multiples of their length, so that bars stay the same while moving.
function drawIntervals(context) {
  const length = Math.max(1, tickStep(view.to - view.from, (timeline.width - timeline.gutter) / 6));
  const first = Math.floor(view.from / length);
  const count = Math.ceil(view.to / length) - first;
  const bins = chart.flows.map((flow) => Array.from({ length: count }, (_, place) =>
    bytesBefore(flow, (first + place + 1) * length) - bytesBefore(flow, (first + place) * length)));
  const sums = Array.from({ length: count },
    (_, place) => bins.reduce((sum, bin) => sum + bin[place], 0));
  const most = roundUp(sums.reduce((high, sum) => Math.max(high, sum), 0));
  for (let place = 0; place < count; place += 1) {
    drawStack(context, bins.map((bin) => bin[place]), (first + place) * length, length, most);
  }
  setChartCaption(`Bytes per ${timeText(length)}`);
  return most;
}

function drawStack(context, parts, time, length, most) {
  const left = Math.round(xOf(time));
  const width = Math.max(1, Math.round(xOf(time + length)) - left - 1);
  let bottom = CHART_HEIGHT - 20;
  parts.forEach((bytes, place) => {
    const direction = chart.flows[place].direction;
    const height = heightOf(bytes, most);
    if (height === 0) return;
    const drawn = Math.max(1, height);
    for (const style of [timeline.colours[direction], timeline.patterns[direction]]) {
      if (style === undefined) continue;
      context.fillStyle = style;
      context.fillRect(left, bottom - drawn, width, drawn);
    }
    bottom -= height;
  });
}

function drawTotals(context) {
  const most = roundUp(chart.flows.reduce((high, flow) =>
    Math.max(high, bytesBefore(flow, view.to)), 0));
  for (const flow of chart.flows) {
    context.strokeStyle = timeline.colours[flow.direction];
    context.lineWidth = 2;
    context.setLineDash(DASHES[flow.direction]);
    context.beginPath();
    for (let x = timeline.gutter; x <= timeline.width; x += 1) {
      context.lineTo(x, CHART_HEIGHT - 20 - heightOf(bytesBefore(flow, timeAt(x)), most));
    }
    context.stroke();
  }
  context.setLineDash([]);
  context.lineWidth = 1;
  setChartCaption("Bytes since the beginning (full line to devices, dashed to the host, dotted "
    + "between devices)");
  return most;
}

function roundUp(bytes) {
  if (bytes === 0) return 0;
  const power = 10 ** Math.floor(Math.log10(bytes));
  return power * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= bytes * 0.999);
}

// Written after a pause: while the view moves, nobody can read it.
function setChartCaption(text) {
  const write = () => {
    const sums = chart.flows.map((flow) => `${shortBytes(bytesBefore(flow, view.to)
      - bytesBefore(flow, view.from))} ${directionWords(flow.direction)}`);
    byId("chart-caption").textContent = `${text}. In view: ${sums.join(", ")}.`;
  };
  clearTimeout(chart.timer);
  chart.timer = setTimeout(write, 120);
}

function drawChartAxes(context, most) {
  const { colours, width, gutter } = timeline;
  const { step, times } = ticks();
  context.fillStyle = colours.line;
  context.fillRect(gutter, CHART_HEIGHT - 20, width - gutter, 1);
  context.fillStyle = colours.muted;
  for (const time of times) putTick(context, time, step, CHART_HEIGHT - 9);
  for (const share of most === 0 ? [0] : [0, 0.5, 1]) {
    const y = CHART_HEIGHT - 20 - heightOf(most * share, most);
    if (gutter > 0) put(context, shortBytes(most * share), gutter - 6, y, gutter, "right");
    else if (share > 0) put(context, shortBytes(most * share), 4, y + 1, 120);
  }
}

function startChart() {
  chart.context = byId("chart").getContext("2d", { alpha: false });
  chart.flows = [...DIRECTIONS.keys()].map(makeFlow);
  byId("chart-kind").addEventListener("change", (event) => {
    chart.kind = event.target.value;
    requestDraw();
  });
}

// ---- Graph of devices ----

const EDGE = 52;

function drawing(tag, attributes = {}, text = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

function edgesOf(sites) {
  const ends = (site) => {
    if (site.direction === "to_device") return ["host", site.device];
    return site.direction === "to_host" ? [site.device, "host"] : [site.source, site.device];
  };
  const known = sites.filter((site) => DIRECTIONS.has(site.direction));
  const groups = gather(known, (site) => JSON.stringify([site.direction, ...ends(site)]));
  return [...groups.values()].map((members) => {
    const [from, to] = ends(members[0]);
    const arrays = sumsOf(members, (site) => site.array)
      .sort((left, right) => right.bytes - left.bytes);
    const sum = summed("", members);
    return { from, to, direction: members[0].direction, bytes: sum.bytes, count: sum.count,
      arrays };
  });
}

const edgeText = (edge) => `${shortBytes(edge.bytes)}, ${copiesText(edge.count)}`;

function topArrays(edge, letters) {
  const names = edge.arrays.slice(0, 3).map((array) => nameText(array.key, 24));
  const more = edge.arrays.length - names.length;
  return shorten(names.join(", "), letters) + (more > 0 ? ` +${more}` : "");
}

// The host is one tall box, and a copy between devices ends in a small box of its own: so every
// edge is a straight line that carries its words, and no two of them cross.
function drawGraph() {
  const host = byId("graph");
  const edges = edgesOf(report.sites).sort((left, right) => right.bytes - left.bytes);
  if (edges.length === 0) return host.replaceChildren(make("p", {}, "Nothing was copied."));
  const plan = planGraph(edges, host.clientWidth - 2);
  const svg = drawing("svg", { role: "img", style: "display:block", width: plan.room });
  svg.append(drawing("title", {}, graphText(edges)), markers());
  let top = 14;
  for (const device of plan.devices) top = drawDevice(svg, plan, device, edges, top);
  node(svg, plan.host, 14, plan.box, top - 26, "host");
  svg.setAttribute("height", top + 2);
  host.replaceChildren(svg);
}

// The columns from left to right: host, devices and, with copies between devices, their targets.
function planGraph(edges, width) {
  const peers = edges.some((edge) => edge.direction === "between_devices");
  const room = Math.max(width, peers ? 560 : 300);
  const box = Math.max(66, Math.min(130, room * 0.13));
  const last = room - 14 - box;
  const names = new Set(edges.flatMap((edge) => {
    if (edge.direction === "between_devices") return [edge.from, edge.to];
    return [edge.direction === "to_device" ? edge.to : edge.from];
  }));
  const devices = [...names].sort((left, right) => compareText(left ?? "", right ?? ""));
  return { room, box, devices, host: 14, device: peers ? (14 + last) / 2 : last, target: last,
    most: edges[0].bytes };
}

const graphText = (edges) => edges.map((edge) => `${nameText(edge.from, 40)} to `
  + `${nameText(edge.to, 40)}: ${edgeText(edge)}: ${topArrays(edge, 90)}`).join(". ");

function markers() {
  const holder = drawing("defs");
  for (const [direction, { style }] of DIRECTIONS) {
    const marker = drawing("marker", { id: `arrow-${direction}`, viewBox: "0 0 8 8",
      refX: 7, refY: 4,
      markerWidth: 11, markerHeight: 11, markerUnits: "userSpaceOnUse", orient: "auto" });
    marker.append(drawing("path", { d: "M0 0L8 4L0 8z", style: `fill: var(${style})` }));
    holder.append(marker);
  }
  return holder;
}

function drawDevice(svg, plan, device, edges, top) {
  const links = edges.filter((edge) => (edge.direction === "to_device" && edge.to === device)
    || (edge.direction === "to_host" && edge.from === device));
  const peers = edges.filter((edge) => edge.direction === "between_devices"
    && edge.from === device);
  const height = Math.max(1, links.length, peers.length) * EDGE + 6;
  const [left, right] = [[plan.host + plan.box, plan.device],
    [plan.device + plan.box, plan.target]];
  links.forEach((edge, place) => drawLink(svg, plan, edge, left, top + 30 + place * EDGE));
  peers.forEach((edge, place) => {
    const y = top + 30 + place * EDGE;
    drawLink(svg, plan, edge, right, y);
    node(svg, plan.target, y - 14, plan.box, 28, edge.to);
  });
  node(svg, plan.device, top, plan.box, height, device);
  return top + height + 12;
}

function node(svg, x, y, width, height, name) {
  svg.append(drawing("rect", { class: "node", x, y, width, height, rx: 6 }));
  const words = shorten(nameText(name, 40), Math.floor((width - 8) / 7.2));
  svg.append(drawing("text", { class: "strong", x: x + width / 2, y: y + height / 2 + 4,
    "text-anchor": "middle" }, words));
}

function edgeLine(edge, plan, path) {
  const { style } = DIRECTIONS.get(edge.direction);
  const dashes = DASHES[edge.direction].join(" ") || "none";
  const thickness = 1.5 + 3 * Math.sqrt(edge.bytes / Math.max(1, plan.most));
  return drawing("path", { d: path, fill: "none", "stroke-width": thickness.toFixed(1),
    "stroke-dasharray": dashes, "marker-end": `url(#arrow-${edge.direction})`,
    style: `stroke: var(${style})` });
}

function drawLink(svg, plan, edge, [left, right], y) {
  const back = edge.direction === "to_host";
  svg.append(edgeLine(edge, plan, back ? `M${right - 2} ${y}H${left + 2}`
    : `M${left + 2} ${y}H${right - 2}`));
  const letters = Math.floor((right - left) / 7.4);
  const place = { x: (left + right) / 2, "text-anchor": "middle" };
  svg.append(
    drawing("text", { class: "strong", y: y - 7, ...place }, shorten(edgeText(edge), letters)),
    drawing("text", { class: "faint", y: y + 17, ...place }, topArrays(edge, letters)));
}

function startGraph() {
  drawGraph();
  let width = byId("graph").clientWidth;
  new ResizeObserver(() => {
    if (byId("graph").clientWidth === width) return;
    width = byId("graph").clientWidth;
    drawGraph();
  }).observe(byId("graph"));
}
