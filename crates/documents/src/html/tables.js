// The selected record, the tables of copies and the table of records.

// ---- Details of the selected record ----

function recordTitle(record) {
  const words = { copy: "Copy of", launch: "Launch of", wait: "Wait for", allocation: "Allocation",
    eviction: "Eviction", discard: "Unread copy of", access: "Access of", message: "Message of",
    barrier: "Barrier" };
  const word = words[record.kind] ?? nameText(record.kind.replaceAll("_", " "), 30);
  const name = record.kind === "wait" ? record.device : record.name ?? arrayName(record.raw.array);
  return name === null ? word : `${word} ${apart(name, 60)}`;
}

const arrayName = (id) => textOrNull(report.arrays.get(id)?.name);

// One line for the tip, for the live region and for people who cannot see the bars.
function sentence(record) {
  const parts = [recordTitle(record)];
  const isMoved = record.kind === "copy" || record.kind === "message";
  if (isMoved) parts.push(routeText(record), bytesText(record.bytes));
  if (record.kind === "launch") parts.push(`on ${placeText(record)}`);
  const isMemory = ["allocation", "eviction", "discard"].includes(record.kind);
  if (isMemory) parts.push(bytesText(record.bytes));
  parts.push(record.timed ? timeText(record.ends - record.begins)
    : `queued at ${timeText(record.queued)}`);
  if (record.site !== null) parts.push(apart(record.site, 60, true));
  return parts.join(", ");
}

const placeText = (record) => apart(record.device, 30)
  + (record.stream === null ? "" : ` stream ${apart(String(record.stream), 20)}`);

/** The other end of a message: a process, or all of them. */
const peerText = (record) => (record.peer === null ? "all ranks" : `rank ${record.peer}`);

function routeText(record) {
  const device = apart(record.device, 30);
  if (record.direction === "to_device") return `host to ${device}`;
  if (record.direction === "to_host") return `${device} to host`;
  if (record.direction === "sent") return `${device} to ${peerText(record)}`;
  if (record.direction === "received") return `${peerText(record)} to ${device}`;
  return `${record.source === null ? "a device" : apart(record.source, 30)} to ${device}`;
}

function arrayText(id) {
  const array = report.arrays.get(id);
  const lengths = Array.isArray(array?.shape) ? array.shape : [];
  const shape = lengths.map((length) => grouped(natural(length)));
  const element = nameText(textOrNull(array?.element) ?? "?", 40);
  return array === undefined ? `#${id}` : `#${id}, ${element} [${shape.join(", ")}]`;
}

function arrayElement(id) {
  return make("span", {}, isolated(arrayName(id), 2000), ` ${arrayText(id)}`);
}

const staleWords = (record) => {
  if (record.staleSince !== null) return record.staleSince;
  const same = report.sites.find((site) => site.site === record.site && site.array === record.name
    && site.direction === record.direction && site.device === record.device);
  return same?.neverThere && same.staleSince === null ? "it was never there" : null;
};

function recordLink(index) {
  const record = report.records[index];
  const size = record.kind === "copy" ? `, ${bytesText(record.bytes)}` : "";
  return linkButton(make("bdi", {}, recordTitle(record) + size), () => select(index));
}

function listOf(items, most = 12) {
  const list = make("ul", {}, ...items.slice(0, most).map((item) => make("li", {}, item)));
  if (items.length > most) list.append(make("li", {}, `and ${grouped(items.length - most)} more`));
  return list;
}

// The fields as pairs of a label and what to show; null leaves one out.
function fieldsOf(record) {
  const raw = record.raw;
  const text = (value) => (value === null ? null
    : make("span", { className: "long" }, isolated(value, 1e6)));
  const code = (value) => (value === null ? null
    : make("span", { className: "code" }, text(value)));
  return [["Name", text(record.name)],
    ["Array", raw.array === undefined || raw.array === null ? null : arrayElement(raw.array)],
    ["Direction", record.direction === null ? null : directionElement(record.direction)],
    ["Route", record.kind === "copy" || record.kind === "message" ? routeText(record) : null],
    ["Device", text(record.device)],
    ["Stream", record.stream === null ? null : text(String(record.stream))],
    ["Thread", text(record.thread)], ["Call site", code(record.site)],
    ["Stale since", record.kind === "copy" ? code(staleWords(record)) : null],
    ["Access", record.kind === "access" ? code(textOrNull(raw.access)) : null],
    ["Part", typeof raw.is_whole !== "boolean" ? null : raw.is_whole ? "the whole array"
      : "a part of the array"],
    ["Reason", textOrNull(raw.reason) === null ? null
      : nameText(raw.reason.replaceAll("_", " "), 40)],
    ["Number", record.kind === "barrier" ? numberText(raw.number) : null],
    ["Waited", raw.waited_ns > 0 ? timeText(raw.waited_ns) : null],
    ["Cause", record.cause === null ? null : CAUSES.get(record.cause) ?? nameText(record.cause)],
    ["Bytes", raw.bytes === undefined ? null : bytesText(record.bytes)],
    ["Changed", numberOrNull(raw.changed_bytes) === null ? null
      : bytesText(natural(raw.changed_bytes))],
    ["Host memory", raw.is_pageable === true ? "pageable" : null],
    ["Queueing took", numberOrNull(raw.host_ns) === null ? null : timeText(raw.host_ns)],
    ["Padding", record.padding > 0 ? `${bytesText(record.padding)} of these were unchanged`
      : null],
    ...timeFields(record), ...relationFields(record), ...otherFields(record)];
}

const numberText = (value) => (numberOrNull(value) === null ? null : grouped(value));

function timeFields(record) {
  const when = (time) => `${timeText(time)} (${grouped(time)} ns)`;
  const began = record.kind === "wait" ? "Began" : "Queued";
  const fields = [[began, when(record.queued)]];
  if (record.called !== null) fields.unshift(["Called", when(record.called)]);
  const started = record.kind === "wait" ? null : record.started;
  if (started !== null) fields.push(["Started", when(started)]);
  if (record.finished !== null) fields.push(["Finished", when(record.finished)]);
  if (record.timed) fields.push(["Took", timeText(record.ends - record.begins)]);
  else if ("started_ns" in record.raw) fields.push(["Took", "not known: no times from the device"]);
  return fields;
}

function relationFields(record) {
  const links = relatives(record).map(recordLink);
  if (record.kind === "copy" && numberOrNull(record.raw.launch) !== null) {
    const forgotten = `launch ${record.raw.launch}, not among the records`;
    return [["Caused by", links.length > 0 ? links[0] : forgotten]];
  }
  if (record.kind !== "launch") return [];
  const uses = objects(record.raw.arguments).map((use) =>
    make("span", {}, make("span", { className: "code" }, nameText(textOrNull(use.access), 12)),
      " ", arrayElement(use.array)));
  return [["Arguments", uses.length > 0 ? listOf(uses) : "none"],
    ["Caused", links.length > 0 ? listOf(links) : "no copy"]];
}

// What has a row of its own, and what only the library compares.
const KNOWN = new Set(["kind", "id", "called_ns", "queued_ns", "started_ns", "finished_ns",
  "thread", "device", "stream", "site", "array", "name", "direction", "source", "bytes", "padding",
  "cause", "stale_since", "launch", "arguments", "peer", "waited_ns", "changed_bytes", "host_ns",
  "is_pageable", "access", "is_whole", "reason", "number", "use_number", "contents_hash"]);

// What a later version of the library may add is shown as it is.
function otherFields(record) {
  return Object.entries(record.raw)
    .filter(([name, value]) => !KNOWN.has(name) && value !== null).slice(0, 20)
    .map(([name, value]) => [nameText(name, 30), isolated(JSON.stringify(value), 2000)]);
}

function showDetails(record) {
  const host = byId("details");
  if (record === null) {
    const hint = report.records.length === 0 ? "There is no record."
      : "Choose a bar of the timeline, or a row of the records, to see all its fields here.";
    host.replaceChildren(make("h3", {}, "Selected record"),
      make("p", { className: "muted" }, hint));
    return;
  }
  const zoomButton = make("button", { type: "button" }, "Zoom to it");
  zoomButton.addEventListener("click", () => zoomTo(record));
  const list = make("dl");
  for (const [label, value] of fieldsOf(record)) {
    if (value !== null) list.append(make("dt", {}, label), make("dd", {}, value));
  }
  const position = `Record ${grouped(record.index + 1)} of ${grouped(report.records.length)}`;
  host.replaceChildren(make("h3", {}, swatch(categoryOf(record)), " ",
    make("bdi", {}, recordTitle(record))),
    make("p", { className: "muted" }, position), list, zoomButton);
}

function startDetails() {
  showDetails(null);
  report.onSelect.push((record) => {
    showDetails(record);
    byId("announcement").textContent = record === null ? "No record is selected."
      : `Record ${grouped(record.index + 1)}: ${sentence(record)}`;
  });
}

// ---- Tables that sort, filter and turn pages ----

// A column: { label, value: row => number or text, cell: row => node or text, number, wrap }.
function createTable(host, name, pageSize) {
  const table = { host, name, pageSize, columns: [], rows: [], shown: [], page: 0, sort: null,
    filter: "", note: "" };
  table.caption = make("caption");
  table.head = make("tr");
  table.body = make("tbody");
  table.pager = make("div", { className: "pager" });
  const element = make("table", {}, table.caption, make("thead", {}, table.head), table.body);
  const frame = make("div",
    { className: "scroll", tabIndex: 0, role: "region", "aria-label": name }, element);
  host.replaceChildren(frame, table.pager);
  return table;
}

function fillTable(table, columns, rows, sort) {
  Object.assign(table, { columns, rows, sort });
  table.head.replaceChildren(...columns.map((column, place) => headCell(table, column, place)));
  arrange(table);
}

function headCell(table, column, place) {
  const order = make("span", { className: "order", "aria-hidden": "true" });
  const words = column.number ? [order, column.label] : [column.label, order];
  const button = make("button", { type: "button" }, ...words);
  button.addEventListener("click", () => {
    const same = table.sort?.place === place;
    table.sort = { place, descending: same ? !table.sort.descending : column.number === true };
    arrange(table);
  });
  return make("th", { scope: "col", className: column.number ? "number" : "" }, button);
}

function markOrder(table) {
  [...table.head.children].forEach((cell, place) => {
    const sorted = table.sort?.place === place;
    const order = table.sort?.descending ? "descending" : "ascending";
    cell.setAttribute("aria-sort", sorted ? order : "none");
    const marks = { ascending: "\u25b4", descending: "\u25be" };
    cell.querySelector(".order").textContent = sorted ? marks[order] : "";
  });
}

// Every word of the filter must occur in some column of the row.
function matches(table, row, words) {
  row.searched ??= table.columns.map((column) => column.value(row) ?? "").join("\n").toLowerCase();
  return words.every((word) => row.searched.includes(word));
}

function arrange(table) {
  const words = table.filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  table.shown = table.rows.filter((row) => words.length === 0 || matches(table, row, words));
  if (table.sort !== null) {
    const { value } = table.columns[table.sort.place];
    const sign = table.sort.descending ? -1 : 1;
    const keyed = table.shown.map((row) => [value(row), row]);
    keyed.sort(([left], [right]) => sign * compareValues(left, right));
    table.shown = keyed.map(([, row]) => row);
  }
  table.page = 0;
  markOrder(table);
  showPage(table);
}

function compareValues(left, right) {
  if (typeof left === "number" && typeof right === "number") return left - right;
  return compareText(String(left ?? ""), String(right ?? ""));
}

function showPage(table) {
  const first = table.page * table.pageSize;
  const rows = table.shown.slice(first, first + table.pageSize);
  table.body.replaceChildren(...rows.map((row) => bodyRow(table, row)));
  if (rows.length === 0) table.body.append(emptyRow(table));
  const all = table.rows.length;
  const found = table.shown.length === all ? grouped(all)
    : `${grouped(table.shown.length)} of ${grouped(all)}`;
  table.caption.textContent = `${table.name}: ${found}. ${table.note}`;
  showPager(table);
}

function bodyRow(table, row) {
  const cells = table.columns.map((column) => make("td",
    { className: column.number ? "number" : column.wrap ? "wrap" : "" },
    column.cell(row) ?? "\u2013"));
  const element = make("tr", {}, ...cells);
  const chosen = row.index !== undefined && row.index === report.selected;
  if (chosen) element.setAttribute("aria-current", "true");
  return element;
}

function emptyRow(table) {
  const text = table.rows.length === 0 ? "There is none." : "None fits the filter.";
  return make("tr", {}, make("td", { colSpan: table.columns.length, className: "muted" }, text));
}

function showPager(table) {
  const pages = Math.max(1, Math.ceil(table.shown.length / table.pageSize));
  table.pager.hidden = pages === 1;
  if (pages === 1) return;
  const focused = document.activeElement?.dataset?.turn;
  const turn = (label, to) => {
    const button = make("button",
      { type: "button", disabled: to < 0 || to >= pages || to === table.page }, label);
    button.dataset.turn = label;
    button.addEventListener("click", () => {
      table.page = to;
      showPage(table);
    });
    return button;
  };
  const place = make("span", { className: "muted" },
    `page ${grouped(table.page + 1)} of ${grouped(pages)}`);
  const inside = table.pager.contains(document.activeElement);
  table.pager.replaceChildren(turn("First", 0), turn("Previous", table.page - 1), place,
    turn("Next", table.page + 1), turn("Last", pages - 1));
  if (!inside) return;
  const enabled = [...table.pager.querySelectorAll("button:not(:disabled)")];
  (enabled.find((button) => button.dataset.turn === focused) ?? enabled[0]).focus();
}

// Filters after a pause, so that typing stays quick with many rows.
function connectFilter(input, table) {
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      table.filter = input.value;
      arrange(table);
    }, 120);
  });
}

// ---- Copies: by call site, array, device, stream ----

// The columns by which tables are sorted first come second, so that narrow screens show them.

const moves = { table: null };
const NUMBER = (label, value) =>
  ({ label, value, cell: (row) => grouped(value(row)), number: true });
const BYTES = (label, value, most, category = () => "") => ({ label, value, number: true,
  cell: (row) => bytesCell(value(row), most, category(row)) });

// The bar below the number compares it with the largest one of the column.
function bytesCell(bytes, most, category) {
  const bar = make("span", { className: `share ${category}`, "aria-hidden": "true" });
  bar.style.width = `${most === 0 ? 0 : Math.max(bytes > 0 ? 2 : 0, (100 * bytes) / most)}%`;
  return make("span", {}, grouped(bytes), bar);
}

const largest = (rows, value) => rows.reduce((most, row) => Math.max(most, value(row)), 0);
const staleText = (row) => row.staleSince ?? (row.neverThere ? "never there" : "");

function devicesText(row) {
  const device = apart(row.device, 30);
  if (row.direction === "sent") return `${device} \u2192 ${peerText(row)}`;
  if (row.direction === "received") return `${peerText(row)} \u2192 ${device}`;
  return row.source === null ? device : `${apart(row.source, 30)} \u2192 ${device}`;
}

function siteColumns(rows) {
  return [{ label: "Call site", wrap: true, value: (row) => row.site, cell: siteCell },
    BYTES("Bytes", (row) => row.bytes, largest(rows, (row) => row.bytes), (row) => row.direction),
    NUMBER("Copies", (row) => row.count),
    { label: "Array", wrap: true, value: (row) => row.array,
      cell: (row) => isolated(row.array, 48) },
    { label: "Direction", value: (row) => directionWords(row.direction),
      cell: (row) => directionElement(row.direction) },
    { label: "Device", value: devicesText, cell: (row) => make("bdi", {}, devicesText(row)) },
    { label: "Cause", value: (row) => CAUSES.get(row.cause) ?? row.cause,
      cell: (row) => CAUSES.get(row.cause) ?? nameText(row.cause, 30) },
    { label: "Stale since", wrap: true, value: staleText,
      cell: (row) => (row.staleSince === null ? staleText(row) || null
        : siteElement(row.staleSince)) }];
}

function siteCell(row) {
  if (row.site === null) return "not known";
  return linkButton(siteElement(row.site), () => filterRecords(row.site),
    `Show the records of ${nameText(row.site)}`);
}

const emptySum = () => ({ to_device: 0, to_host: 0, between_devices: 0, count: 0, bytes: 0,
  launches: 0, busy: 0, copying: 0, sites: new Set() });

function summed(key, items) {
  const sum = Object.assign(emptySum(), { key, first: items[0] });
  for (const item of items) {
    if (item.direction in sum) sum[item.direction] += item.bytes;
    sum.count += item.count;
    sum.bytes += item.bytes;
    sum.sites.add(item.site);
  }
  return sum;
}

const sumsOf = (items, keyOf) =>
  [...gather(items, keyOf)].map(([key, members]) => summed(key, members));

function directionColumns(rows) {
  return [...DIRECTIONS].map(([key, { label }]) =>
    BYTES(label.charAt(0).toUpperCase() + label.slice(1),
    (row) => row[key], largest(rows, (row) => row[key]), () => key));
}

function sumColumns(label, rows) {
  return [{ label, wrap: true, value: (row) => row.key, cell: (row) => isolated(row.key, 60) },
    BYTES("All bytes", (row) => row.bytes, largest(rows, (row) => row.bytes)),
    NUMBER("Copies", (row) => row.count), ...directionColumns(rows),
    NUMBER("Call sites", (row) => row.sites.size)];
}

function streamRows() {
  const placed = report.records.filter((record) => record.kind === "copy"
    || record.kind === "launch");
  return [...gather(placed, streamKey).values()].map((members) => {
    const copies = members.filter((record) => record.kind === "copy");
    const launches = members.filter((record) => record.kind === "launch");
    const sum = summed(placeText(members[0]), copies.map((copy) => ({ ...copy, count: 1 })));
    const took = (records) => records.reduce((all, record) => all + record.ends - record.begins, 0);
    const timed = members.some((record) => record.timed);
    return Object.assign(sum, { launches: launches.length, busy: took(launches),
      copying: took(copies), timed });
  });
}

function streamColumns(rows) {
  const time = (label, value) => ({ label, value, number: true,
    cell: (row) => (row.timed ? timeText(value(row)) : "not known") });
  return [{ label: "Stream", wrap: true, value: (row) => row.key,
    cell: (row) => make("bdi", {}, row.key) },
    NUMBER("Copies", (row) => row.count), NUMBER("Launches", (row) => row.launches),
    time("Time in kernels", (row) => row.busy), time("Time in copies", (row) => row.copying),
    ...directionColumns(rows)];
}

const GROUPS = {
  site: () => ({ name: "Copies by call site", note: "Choose a call site to see its records.",
    rows: report.sites, columns: siteColumns(report.sites), by: "Bytes" }),
  array: () => sumGroup("Copies by array", "Array", (site) => site.array, "Exact."),
  device: () => sumGroup("Copies by device", "Device", (site) => site.device,
    "A copy between devices counts for the one it goes to."),
  stream: () => {
    const rows = streamRows();
    const note = report.totals.forgotten > 0 ? "Counts only the records that are shown." : "";
    return { name: "Work by stream", note, rows, columns: streamColumns(rows), by: "Copies" };
  },
};

function sumGroup(name, label, keyOf, note) {
  const rows = sumsOf(report.sites.filter((site) => !MESSAGES.has(site.direction)), keyOf);
  return { name, note, rows, columns: sumColumns(label, rows), by: "All bytes" };
}

function showGroup(key) {
  const { name, note, rows, columns, by } = GROUPS[key]();
  Object.assign(moves.table, { name, note });
  const place = columns.findIndex((column) => column.label === by);
  fillTable(moves.table, columns, rows, { place, descending: true });
}

function filterMoves(site) {
  byId("moves-filter").value = site;
  moves.table.filter = site;
  byId("group").querySelector("[value=site]").checked = true;
  showGroup("site");
  byId("moves-title").scrollIntoView();
  byId("moves-filter").focus({ preventScroll: true });
}

function startMoves() {
  moves.table = createTable(byId("moves"), "Copies", 20);
  showGroup("site");
  byId("group").addEventListener("change", (event) => showGroup(event.target.value));
  connectFilter(byId("moves-filter"), moves.table);
}

// ---- Records ----

const recordsTable = { table: null };

function recordColumns() {
  return [{ label: "Number", number: true, value: (row) => row.index + 1, cell: recordCell },
    NUMBER("Queued (ns)", (row) => row.queued),
    { label: "Took", number: true, value: (row) => (row.timed ? row.ends - row.begins : -1),
      cell: (row) => (row.timed ? timeText(row.ends - row.begins) : null) },
    { label: "Kind", value: kindWords, cell: kindCell },
    { label: "Name", wrap: true, value: (row) => row.name ?? arrayName(row.raw.array) ?? "",
      cell: (row) => (["wait", "barrier"].includes(row.kind) ? null
        : isolated(row.name ?? arrayName(row.raw.array), 48)) },
    { label: "Place", value: (row) => placeText(row),
      cell: (row) => make("bdi", {}, placeText(row)) },
    { label: "Bytes", number: true, value: (row) => row.bytes,
      cell: (row) => (row.raw.bytes === undefined ? null : grouped(row.bytes)) },
    { label: "Thread", value: (row) => row.thread, cell: (row) => isolated(row.thread, 24) },
    { label: "Call site", wrap: true, value: (row) => row.site,
      cell: (row) => (row.site === null ? null : siteElement(row.site)) }];
}

function recordCell(record) {
  const label = `Select record ${grouped(record.index + 1)}: ${recordTitle(record)}`;
  return linkButton(grouped(record.index + 1), () => select(record.index), label);
}

function kindWords(record) {
  const isMoved = record.kind === "copy" || record.kind === "message";
  if (!isMoved || record.direction === null) return nameText(record.kind, 24);
  return `${record.kind} ${directionWords(record.direction)}`;
}

function kindCell(record) {
  return make("span", { className: "direction" }, swatch(categoryOf(record)), kindWords(record));
}

function showRecords() {
  const kind = byId("records-kind").value;
  const rows = kind === "" ? report.records
    : report.records.filter((record) => record.kind === kind);
  fillTable(recordsTable.table, recordColumns(), rows, recordsTable.table.sort);
}

function filterRecords(site) {
  byId("records-filter").value = site;
  byId("records-kind").value = "";
  recordsTable.table.filter = site;
  showRecords();
  byId("records-title").scrollIntoView();
  const first = recordsTable.table.shown[0];
  if (first !== undefined) select(first.index);
  byId("records-filter").focus({ preventScroll: true });
}

// Turns to the page of the selected record and marks its row; never scrolls the page.
function followSelection(record) {
  const table = recordsTable.table;
  const place = record === null ? -1 : table.shown.indexOf(record);
  if (place >= 0) table.page = Math.floor(place / table.pageSize);
  const inside = table.body.contains(document.activeElement);
  showPage(table);
  if (inside) table.body.querySelector("[aria-current] button")?.focus({ preventScroll: true });
}

function startRecords() {
  const kinds = [...new Set(report.records.map((record) => record.kind))].sort(compareText);
  byId("records-kind").append(new Option("all", ""),
    ...kinds.map((kind) => new Option(nameText(kind, 40), kind)));
  recordsTable.table = createTable(byId("records"), "Records", 20);
  recordsTable.table.note = "Choose a number to select the record in the timeline.";
  showRecords();
  byId("records-kind").addEventListener("change", showRecords);
  connectFilter(byId("records-filter"), recordsTable.table);
  report.onSelect.push(followSelection);
}
