// Start, words and numbers, the document, totals and findings.

const DIRECTIONS = new Map([
  ["to_device", { label: "to devices", arrow: "\u2193", style: "--to-device" }],
  ["to_host", { label: "to the host", arrow: "\u2191", style: "--to-host" }],
  ["between_devices", { label: "between devices", arrow: "\u2194", style: "--between" }],
]);
const CAUSES = new Map([
  ["launch", "launch"], ["host", "host access"], ["gpu", "device access"],
  ["prefetch", "prefetch"], ["explicit", "explicit copy"], ["evict", "eviction"],
  ["watch", "watch"], ["mpi", "message"],
]);
// Messages between processes are no copies: they have rows of their own.
const MESSAGES = new Map([["sent", "to other processes"], ["received", "from other processes"]]);
// What the page shows; filled once by `start`.
const report = { totals: null, sites: [], arrays: new Map(), records: [], findings: [],
  checked: null, memory: [], launchOf: new Map(), copiesOf: new Map(), selected: -1, onSelect: [] };

const byId = (id) => document.getElementById(id);

// ---- Words and numbers ----

function grouped(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "_");
}

function plural(value, word, many = `${word}s`) {
  return `${grouped(value)} ${Math.round(value) === 1 ? word : many}`;
}

const bytesText = (bytes) => plural(bytes, "byte");
const copiesText = (count) => plural(count, "copy", "copies");

function threeDigits(value) {
  const decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const [whole, ...fraction] = value.toFixed(decimals).split(".");
  return [grouped(whole), ...fraction].join(".");
}

function scaled(value, units, step) {
  let rank = 0;
  while (rank + 1 < units.length && value >= step * 0.9995) {
    value /= step;
    rank += 1;
  }
  // A no-break space: a number and its unit stay on one line.
  return `${rank === 0 ? grouped(value) : threeDigits(value)}\u00a0${units[rank]}`;
}

const shortBytes = (bytes) => scaled(bytes, ["B", "kB", "MB", "GB", "TB"], 1000);

function timeText(nanoseconds) {
  if (nanoseconds === null) return "not known";
  return scaled(nanoseconds, ["ns", "\u00b5s", "ms", "s"], 1000);
}

// Control and direction characters are written out: none of them may hide or reorder text.
const HIDDEN = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f"
  + "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{1d173}-\\u{1d17a}"
  + "\\u{e0000}-\\u{e007f}]", "gu");

function visible(text) {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0).toString(16).toUpperCase();
    return `\u27e8U+${code.padStart(4, "0")}\u27e9`;
  });
}

// Keeps the end of paths (`tail`) and the beginning of names.
function shorten(text, most, tail = false) {
  if (text.length <= most) return text;
  const points = Array.from(text.slice(0, tail ? 0 : most * 2));
  if (!tail) return points.length <= most ? text : `${points.slice(0, most - 1).join("")}\u2026`;
  return `\u2026${Array.from(text.slice(-most * 2)).slice(1 - most).join("")}`;
}

function nameText(name, most = 48, tail = false) {
  if (name === null) return "(no name)";
  if (name === "") return "(empty name)";
  return shorten(visible(shorten(name, Math.max(4096, most), tail)), most, tail);
}

// For names inside sentences: a name that runs from right to left turns only itself.
const apart = (name, most, tail) => `\u2068${nameText(name, most, tail)}\u2069`;

// ---- Elements: text goes in as text nodes only ----

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function isolated(name, most, tail = false) {
  const shown = nameText(name, most, tail);
  const whole = visible((name ?? "").slice(0, 600));
  return make("bdi", { textContent: shown, title: whole === shown ? null : whole });
}

const siteElement = (site, most = 56) => {
  const element = isolated(site, most, true);
  element.className = "code";
  return element;
};

// A sentence: what is between two backticks is code.
function prose(text, most) {
  const parts = nameText(text, most).split("`");
  if (parts.length % 2 === 0) return make("bdi", {}, parts.join("`"));
  return make("bdi", {}, ...parts.map((part, place) => (place % 2 === 0 ? part
    : make("code", {}, part))));
}

const swatch = (category) =>
  make("span", { className: `swatch ${category}`, "aria-hidden": "true" });

const directionWords = (direction) => DIRECTIONS.get(direction)?.label ?? MESSAGES.get(direction)
  ?? nameText(direction, 24);

function directionElement(direction) {
  const mark = swatch(DIRECTIONS.has(direction) ? direction : "other");
  return make("span", { className: "direction" }, mark, directionWords(direction));
}

function linkButton(content, action, label = null) {
  const button = make("button", { type: "button", className: "link", "aria-label": label },
    content);
  button.addEventListener("click", action);
  return button;
}

// ---- The document ----

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const numberOrNull = (value) => (Number.isFinite(value) ? value : null);
const natural = (value) => (Number.isFinite(value) && value > 0 ? value : 0);
const textOrNull = (value) => (typeof value === "string" ? value : null);
const objects = (value) => (Array.isArray(value) ? value.filter(isObject) : []);

function readDocument(text) {
  let raw;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw new Error(`The audit document inside this page is not valid JSON. ${error.message}`);
  }
  if (!isObject(raw)) throw new Error("The audit document inside this page is not an object.");
  if (raw.version !== 1) {
    throw new Error("This page reads version 1 of the audit document; the document inside it "
      + `names version ${shorten(JSON.stringify(raw.version ?? null), 40)}.`);
  }
  return raw;
}

function totalsOf(raw) {
  const pair = (key) => ({ count: natural(raw[key]?.count), bytes: natural(raw[key]?.bytes) });
  const totals = { launches: natural(raw.launches), duration: natural(raw.duration_ns),
    forgotten: natural(raw.records_forgotten), waits: natural(raw.waits?.count),
    waited: natural(raw.waits?.nanoseconds) };
  for (const key of ["to_device", "to_host", "between_devices", "avoided", "conservative",
    "padding", "allocations", "evictions", "sent", "received"]) totals[key] = pair(key);
  totals.peerWaits = { count: natural(raw.peer_waits?.count),
    time: natural(raw.peer_waits?.nanoseconds) };
  totals.rank = numberOrNull(raw.rank);
  totals.ranks = numberOrNull(raw.ranks);
  totals.host = textOrNull(raw.host);
  const moved = [...DIRECTIONS.keys()].map((key) => totals[key]);
  totals.bytes = moved.reduce((sum, part) => sum + part.bytes, 0);
  totals.count = moved.reduce((sum, part) => sum + part.count, 0);
  return totals;
}

function siteOf(raw) {
  return { site: textOrNull(raw.site), array: textOrNull(raw.array),
    direction: textOrNull(raw.direction) ?? "", device: textOrNull(raw.device),
    source: textOrNull(raw.source), peer: numberOrNull(raw.peer),
    cause: textOrNull(raw.cause) ?? "",
    count: natural(raw.count), bytes: natural(raw.bytes),
    staleSince: textOrNull(raw.stale_since), neverThere: raw.never_there === true };
}

// Where records without a device are.
const PLACES = new Map([["access", "the host"], ["barrier", "all processes"]]);

function recordOf(raw, index) {
  const queued = natural(raw.queued_ns);
  const wait = raw.kind === "wait";
  // A message and a barrier are from the beginning of the thread's wait to their record.
  const waited = ["message", "barrier"].includes(raw.kind) ? natural(raw.waited_ns) : 0;
  const finished = waited > 0 ? queued : numberOrNull(raw.finished_ns);
  const started = waited > 0 ? Math.max(0, queued - waited)
    : wait ? queued : numberOrNull(raw.started_ns);
  const timed = started !== null && finished !== null;
  return { index, raw, queued, started, finished, timed, kind: textOrNull(raw.kind) ?? "unknown",
    begins: timed ? started : queued, ends: timed ? Math.max(started, finished) : queued,
    called: numberOrNull(raw.called_ns), name: textOrNull(raw.name),
    thread: textOrNull(raw.thread),
    device: textOrNull(raw.device) ?? PLACES.get(raw.kind) ?? null,
    stream: typeof raw.stream === "string" ? raw.stream : numberOrNull(raw.stream),
    site: textOrNull(raw.site), direction: textOrNull(raw.direction),
    source: textOrNull(raw.source), peer: numberOrNull(raw.peer), cause: textOrNull(raw.cause),
    bytes: natural(raw.bytes),
    padding: natural(raw.padding), staleSince: textOrNull(raw.stale_since) };
}

function findingOf(raw) {
  return { kind: textOrNull(raw.kind) ?? "", message: textOrNull(raw.message) ?? "",
    change: textOrNull(raw.change) ?? "", array: textOrNull(raw.array),
    sites: (Array.isArray(raw.sites) ? raw.sites : []).filter((site) => typeof site === "string"),
    count: natural(raw.count), bytes: natural(raw.bytes),
    nanoseconds: numberOrNull(raw.nanoseconds), hostMemory: natural(raw.host_memory_bytes) };
}

// The category decides the colour and the pattern.
function categoryOf(record) {
  if (record.kind === "launch" || record.kind === "wait") return record.kind;
  return record.kind === "copy" && DIRECTIONS.has(record.direction) ? record.direction : "other";
}

function checkedOf(raw) {
  return { kernel: textOrNull(raw.kernel) ?? "", launches: natural(raw.launches),
    accesses: natural(raw.accesses), errors: natural(raw.errors), notes: natural(raw.notes) };
}

function fill(raw) {
  report.totals = totalsOf(raw);
  report.sites = objects(raw.sites).map(siteOf);
  report.arrays = new Map(objects(raw.arrays).map((array) => [array.id, array]));
  report.records = objects(raw.records).map(recordOf);
  report.findings = objects(raw.findings).map(findingOf);
  report.comparedContents = raw.compared_contents ?? null;
  report.checked = Array.isArray(raw.checked) ? objects(raw.checked).map(checkedOf) : null;
  report.memory = objects(raw.memory).map(memoryOf);
  for (const record of report.records) linkLaunch(record);
}

function linkLaunch(record) {
  if (record.kind === "launch") report.launchOf.set(record.raw.id, record.index);
  const launch = record.kind === "copy" ? numberOrNull(record.raw.launch) : null;
  if (launch === null) return;
  if (!report.copiesOf.has(launch)) report.copiesOf.set(launch, []);
  report.copiesOf.get(launch).push(record.index);
}

// The records that a record caused, or the launch that caused it.
function relatives(record) {
  if (record.kind === "launch") return report.copiesOf.get(record.raw.id) ?? [];
  const launch = record.kind === "copy" ? report.launchOf.get(record.raw.launch) : undefined;
  return launch === undefined ? [] : [launch];
}

function select(index) {
  report.selected = index >= 0 && index < report.records.length ? index : -1;
  for (const listener of report.onSelect) listener(report.records[report.selected] ?? null);
}

// ---- Heading ----

function total(label, big, small, category = null) {
  const mark = category === null ? null : swatch(category);
  return make("div", {}, make("dt", {}, mark, label),
    make("dd", { className: "big", textContent: big }),
    make("dd", { className: "small", textContent: small }));
}

function movedTotal(label, part, category = null) {
  const exact = part.bytes < 1000 ? "" : `${bytesText(part.bytes)}, `;
  return total(label, shortBytes(part.bytes), exact + copiesText(part.count), category);
}

function showTotals() {
  const totals = report.totals;
  const parts = [...DIRECTIONS].map(([key, { label }]) => movedTotal(label, totals[key], key));
  for (const [key, label] of MESSAGES) {
    const { bytes, count } = totals[key];
    const small = plural(count, "message");
    if (count > 0) parts.push(total(label, shortBytes(bytes), small));
  }
  if (totals.peerWaits.count > 0) {
    parts.push(total("waits for other processes", timeText(totals.peerWaits.time),
      plural(totals.peerWaits.count, "wait")));
  }
  parts.push(total("launches", grouped(totals.launches), `in ${timeText(totals.duration)}`));
  parts.push(total("waits for devices", timeText(totals.waited), plural(totals.waits, "wait")));
  parts.push(...memoryTotals(totals));
  if (totals.padding.bytes > 0) {
    parts.push(total("copied along", shortBytes(totals.padding.bytes),
      "unchanged bytes between stale parts; in \u201cto devices\u201d"));
  }
  parts.push(movedTotal("a launcher that copies all", totals.conservative));
  parts.push(movedTotal("avoided, compared with it", totals.avoided));
  byId("totals").replaceChildren(...parts);
  byId("summary").textContent = summaryText(totals);
}

function evictionsText(evictions) {
  if (evictions.count === 0) return "no eviction";
  return `${plural(evictions.count, "eviction")} of ${shortBytes(evictions.bytes)}`;
}

// Which process of a job it was, if it was one of several.
function processText({ rank, ranks, host }) {
  if (rank === null) return "";
  const of = ranks === null ? "" : ` of ${grouped(ranks)}`;
  return `Rank ${grouped(rank)}${of}${host === null ? "" : ` on ${apart(host, 60)}`}. `;
}

function summaryText(totals) {
  const launches = plural(totals.launches, "launch", "launches");
  const during = `${processText(totals)}In ${timeText(totals.duration)} and ${launches}`;
  const { bytes, count } = totals;
  const moved = count === 0 ? "nothing was copied"
    : `${copiesText(count)} moved ${bytesText(bytes)}`;
  return `${during}, ${moved}.`;
}

function showForgotten() {
  const forgotten = report.totals.forgotten;
  byId("forgotten").hidden = forgotten === 0;
  byId("forgotten").textContent = `${plural(forgotten, "earlier record")} made room for later ones `
    + `and ${forgotten === 1 ? "is" : "are"} not shown. The totals, the call sites, `
    + "the graph and the findings count everything; the timeline, the streams and the records do "
    + "not.";
}

// ---- Findings ----

const NOT_COMPARED = "Contents were not compared, so no finding tells of writes that change "
  + "nothing or little, or of equal contents that are uploaded again. Ask for it by the word "
  + "\u201ccontents\u201d in RESIDENT_AUDIT, or by audit::compare_contents(). It costs about "
  + "0.2 ms for each MiB that is uploaded, and 1.3 ms for each MiB that the host or a kernel on "
  + "an embedded device may change.";

function compareBar(label, bytes, most) {
  const share = most === 0 ? 0 : (100 * bytes) / most;
  const track = make("div", { className: "track" }, make("div", { className: "fill" }),
    make("div", { className: "saved" }));
  track.children[0].style.width = `${share}%`;
  track.children[1].style.width = `${100 - share}%`;
  track.children[1].hidden = share > 99.9;
  return [make("span", { className: "muted", textContent: label }), track,
    make("span", { className: "value", textContent: bytesText(bytes) })];
}

function savingText(finding, now) {
  const percent = now === 0 ? 0 : Math.min(100, (100 * finding.bytes) / now);
  const share = `${percent.toFixed(percent < 10 ? 1 : 0)}\u00a0%`;
  const parts = [`${bytesText(finding.bytes)} (${share})`, copiesText(finding.count)];
  if (finding.nanoseconds !== null) parts.push(timeText(finding.nanoseconds));
  if (finding.hostMemory > 0) parts.push(`${bytesText(finding.hostMemory)} of host memory`);
  return `Would save ${parts.join(", ")}.`;
}

function findingElement(finding) {
  const now = report.totals.bytes;
  const words = nameText(finding.kind.replaceAll("_", " "), 40);
  const title = make("h3", {}, words.charAt(0).toUpperCase() + words.slice(1));
  if (finding.array !== null) title.append(" of ", isolated(finding.array, 40));
  const sites = finding.sites.map((site) => linkButton(siteElement(site, 90),
    () => filterMoves(site), `Show ${nameText(site)} in the table`));
  return make("article", { className: "finding" },
    make("div", {}, title, make("p", {}, prose(finding.message, 600)),
      make("p", {}, make("strong", {}, "Change: "), prose(finding.change, 600)),
      listOf(sites, 8)),
    make("div", {}, make("p", { className: "saves", textContent: savingText(finding, now) }),
      make("div", { className: "compare" }, ...compareBar("before", now, now),
        ...compareBar("after", Math.max(0, now - finding.bytes), now))));
}

// What the checker of CUDA C has checked: the kernels with findings, errors first.
function showChecked() {
  const host = byId("checked");
  host.hidden = report.checked === null;
  if (report.checked === null) return;
  const sum = (key) => report.checked.reduce((all, kernel) => all + kernel[key], 0);
  const outcome = ({ errors, notes }) => `${plural(errors, "error")}, ${plural(notes, "note")}`;
  const all = { errors: sum("errors"), notes: sum("notes") };
  const text = make("p", {}, `The checker of CUDA C ran over ${plural(sum("launches"), "launch",
    "launches")} of ${plural(report.checked.length, "kernel")}, with ${plural(sum("accesses"),
    "access", "accesses")} of memory: ${outcome(all)}.`);
  const found = report.checked.filter((kernel) => kernel.errors + kernel.notes > 0);
  found.sort((one, other) => other.errors - one.errors || other.notes - one.notes);
  const lines = found.map((kernel) => make("span", {}, isolated(kernel.kernel, 60),
    `: ${plural(kernel.launches, "launch", "launches")}, ${outcome(kernel)}`));
  host.replaceChildren(text, ...(lines.length > 0 ? [listOf(lines, 8)] : []));
}

function showFindings() {
  const host = byId("findings");
  const elements = report.findings.map(findingElement);
  const notes = report.comparedContents === false ? [make("p", { className: "muted" },
    NOT_COMPARED)] : [];
  if (elements.length === 0) {
    host.replaceChildren(make("p", {}, "No finding."), ...notes);
    return;
  }
  const shown = elements.splice(0, 5);
  const note = make("p", { className: "muted" }, "What could be saved, largest first. Each is "
    + "counted by itself: two that name the same copies do not add up.");
  host.replaceChildren(note, ...notes, ...shown);
  if (elements.length === 0) return;
  const more = make("button", { type: "button" }, `Show ${grouped(elements.length)} more`);
  more.addEventListener("click", () => more.replaceWith(...elements));
  host.append(more);
}

// ---- Start ----

function showProblem(message) {
  const problem = byId("problem");
  problem.replaceChildren(make("h2", {}, "This report cannot be shown"),
    make("p", {}, visible(message)));
  problem.hidden = false;
  byId("summary").textContent = "There is nothing to show.";
  byId("sections").hidden = true;
  byId("totals").hidden = true;
  for (const section of document.querySelectorAll("main > section[aria-labelledby]")) {
    section.hidden = true;
  }
}

function start() {
  try {
    fill(readDocument(byId("document").textContent));
  } catch (error) {
    showProblem(error.message);
    return;
  }
  showTotals();
  showForgotten();
  showFindings();
  showChecked();
  startDetails();
  startTimeline();
  startMoves();
  startGraph();
  startMemory();
  startRecords();
}
