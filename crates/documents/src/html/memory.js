// The memory of devices over time, and whose it was.

const MEMORY_WIDTH = 900;
const MEMORY_HEIGHT = 110;

function momentOf(raw) {
  return { at: natural(raw?.at_ns), bytes: natural(raw?.bytes), refused: numberOrNull(raw?.refused),
    holders: objects(raw?.holders).map((holder) => ({ array: textOrNull(holder.array),
      site: textOrNull(holder.site), count: natural(holder.count),
      bytes: natural(holder.bytes) })) };
}

function memoryOf(raw) {
  return { device: textOrNull(raw.device), inUse: natural(raw.in_use), peak: momentOf(raw.peak),
    refusal: isObject(raw.out_of_memory) ? momentOf(raw.out_of_memory) : null,
    series: objects(raw.series).map((point) => [natural(point.at_ns), natural(point.bytes)]) };
}

const memoryName = (memory) => (memory.device === "host" ? "pinned memory of the host"
  : `memory of ${nameText(memory.device, 30)}`);

// One number for each device; reports of earlier libraries have sums of allocations only.
function memoryTotals(totals) {
  const { count, bytes } = totals.allocations;
  const small = `${plural(count, "allocation")}, ${evictionsText(totals.evictions)}`;
  const devices = report.memory.filter((memory) => memory.device !== "host").slice(0, 4);
  const peaks = devices.map((memory) => total(memoryName(memory), shortBytes(memory.peak.bytes),
    `at most; ${shortBytes(memory.inUse)} at the end`));
  return [...peaks, total("allocated on devices", shortBytes(bytes), `in all: ${small}`)];
}

// Steps: what was in use stays until the next change.
function memoryPath(memory, duration) {
  const x = (time) => ((MEMORY_WIDTH * time) / Math.max(1, duration)).toFixed(1);
  const y = (bytes) => (MEMORY_HEIGHT - (MEMORY_HEIGHT - 8) * (bytes / memory.peak.bytes))
    .toFixed(1);
  const steps = memory.series.map(([time, bytes]) => `H${x(time)}V${y(bytes)}`);
  return `M0 ${MEMORY_HEIGHT}${steps.join("")}V${y(memory.inUse)}H${MEMORY_WIDTH}V${MEMORY_HEIGHT}Z`;
}

function memoryChart(memory) {
  const label = `Bytes in use over ${timeText(report.totals.duration)}: at most `
    + `${bytesText(memory.peak.bytes)}, ${timeText(memory.peak.at)} after the beginning.`;
  const chart = drawing("svg", { viewBox: `0 0 ${MEMORY_WIDTH} ${MEMORY_HEIGHT}`, role: "img",
    "aria-label": label, class: "memory", preserveAspectRatio: "none" });
  chart.append(drawing("path", { d: memoryPath(memory, report.totals.duration) }));
  return chart;
}

function holderTable(name, holders) {
  const host = make("div");
  const table = createTable(host, name, 10);
  const columns = [{ label: "Array", wrap: true, value: (row) => row.array ?? "",
    cell: (row) => isolated(row.array, 48) },
  { label: "Bytes", number: true, value: (row) => row.bytes, cell: (row) => grouped(row.bytes) },
  NUMBER("Allocations", (row) => row.count),
  { label: "Allocated at", wrap: true, value: (row) => row.site ?? "",
    cell: (row) => (row.site === null ? null : siteElement(row.site)) }];
  fillTable(table, columns, holders, { place: 1, descending: true });
  return host;
}

function memoryElement(memory) {
  const name = memoryName(memory);
  const { peak, refusal } = memory;
  const text = `${bytesText(peak.bytes)} at most, ${timeText(peak.at)} after the beginning; `
    + `${bytesText(memory.inUse)} at the end.`;
  const element = make("div", {}, make("h3", { textContent: name }), make("p", {}, text),
    memoryChart(memory), holderTable(`What was in the ${name} at the peak`, peak.holders));
  if (refusal !== null) {
    element.append(make("p", { className: "notice" }, `${bytesText(refusal.refused ?? 0)} more were `
      + `refused ${timeText(refusal.at)} after the beginning, when ${bytesText(refusal.bytes)} were `
      + "in use:"), holderTable(`What was in the ${name} when more was refused`, refusal.holders));
  }
  return element;
}

function startMemory() {
  const used = report.memory.filter((memory) => memory.peak.bytes > 0);
  const nothing = make("p", { className: "muted" }, "The report says nothing of memory.");
  byId("memory").replaceChildren(...used.map(memoryElement), ...(used.length === 0 ? [nothing] : []));
}
