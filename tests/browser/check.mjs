// Checks a report in Chromium, without any package: node check.mjs PAGE.html [--frames]
//   [--screenshot FILE [--dark] [--width PIXELS] [--select RECORD] [--full]]
//
// Speaks the DevTools protocol over a pipe: JSON messages that end in a zero byte, on the
// descriptors 3 (to the browser) and 4 (from it). Prints a line per check; exits 1 if one failed.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

function findBrowser() {
  const folders = (process.env.PATH ?? "").split(delimiter);
  for (const name of BROWSERS) {
    const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
    if (found !== undefined) return found;
  }
  throw new Error(`None of ${BROWSERS.join(", ")} is installed.`);
}

// ---- The browser ----

class Browser {
  constructor() {
    this.profile = mkdtempSync(join(tmpdir(), "resident-report-"));
    this.process = spawn(findBrowser(), ["--no-sandbox", "--headless", "--disable-gpu",
      "--remote-debugging-pipe", `--user-data-dir=${this.profile}`, "about:blank"],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.number = 0;
    this.answers = new Map();
    this.rest = Buffer.alloc(0);
    this.process.stdio[4].on("data", (data) => this.read(data));
    this.process.stdio[3].on("error", () => {});
    this.ended = new Promise((settle) => this.process.once("exit", settle));
    this.ended.then(() => this.answers.forEach(({ fail }) => fail(new Error("Chromium ended."))));
  }

  read(data) {
    this.rest = Buffer.concat([this.rest, data]);
    for (let end = this.rest.indexOf(0); end >= 0; end = this.rest.indexOf(0)) {
      const message = JSON.parse(this.rest.subarray(0, end).toString("utf8"));
      this.rest = this.rest.subarray(end + 1);
      this.receive(message);
    }
  }

  receive(message) {
    if (message.id === undefined) return this.onEvent?.(message);
    const { settle, fail } = this.answers.get(message.id);
    this.answers.delete(message.id);
    if (message.error) fail(new Error(message.error.message));
    else settle(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    this.number += 1;
    const id = this.number;
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((settle, fail) => this.answers.set(id, { settle, fail }));
  }

  async close() {
    if (this.process.exitCode === null) await this.send("Browser.close").catch(() => {});
    await this.ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

// One tab, with all that it said and asked for.
class Page {
  static async open(browser) {
    const page = new Page();
    const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
    Object.assign(page, { browser, sessionId, complaints: [], requests: [], loaded: null });
    browser.onEvent = (event) => page.hear(event);
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await page.send(`${domain}.enable`);
    return page;
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  hear({ method, params }) {
    if (method === "Page.loadEventFired") this.loaded?.();
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    if (method === "Runtime.exceptionThrown") {
      this.complaints.push(params.exceptionDetails.exception?.description ?? "exception");
    }
    if (method === "Log.entryAdded" && params.entry.level !== "info") {
      this.complaints.push(params.entry.text);
    }
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) {
      this.complaints.push(params.args.map((each) => each.value).join(" "));
    }
  }

  async load(url) {
    const loaded = new Promise((settle) => { this.loaded = settle; });
    await this.send("Page.navigate", { url });
    await loaded;
    await this.settled();
  }

  // Two frames later, so that what was asked for is drawn.
  settled() {
    return this.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame("
      + "() => done(true))))");
  }

  async value(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate",
      { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? "exception");
    return result.value;
  }

  async size(width, height, scale = 1) {
    await this.send("Emulation.setDeviceMetricsOverride",
      { width, height, deviceScaleFactor: scale, mobile: width < 500 });
    await this.settled();
  }

  async scheme(value) {
    await this.send("Emulation.setEmulatedMedia",
      { features: [{ name: "prefers-color-scheme", value },
        { name: "prefers-reduced-motion", value: "reduce" }] });
    await this.settled();
  }

  async press(key, text = undefined) {
    const codes = { Enter: 13, Escape: 27, ArrowRight: 39 };
    const windowsVirtualKeyCode = codes[key] ?? key.charCodeAt(0);
    await this.send("Input.dispatchKeyEvent",
      { type: "keyDown", key, text, windowsVirtualKeyCode });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode });
    await this.settled();
  }

  async click(x, y) {
    for (const type of ["mousePressed", "mouseReleased"]) {
      await this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
    }
    await this.settled();
  }

  async screenshot(file, full) {
    const height = full ? await this.value("document.documentElement.scrollHeight") : 0;
    if (full) await this.size(this.width, Math.min(height, 8000));
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(file, Buffer.from(data, "base64"));
  }
}

// ---- Checks ----

let failures = 0;

function say(passed, text, seen = "") {
  if (!passed) failures += 1;
  console.log(`${passed ? "ok    " : "FAILED"} ${text}${seen === "" ? "" : `: ${seen}`}`);
}

const rowsIn = (id) => `document.querySelectorAll("#${id} tbody tr").length`;

// The document as the page holds it, or null when it cannot be read.
function readDocument(file) {
  const page = readFileSync(file, "utf8");
  const found = /<script type="application\/json" id="document">([^<]*)<\/script>/.exec(page);
  try {
    const nothing = { count: 0, bytes: 0 };
    return { to_device: nothing, sites: [], arrays: [], records: [], findings: [],
      ...JSON.parse(found[1]) };
  } catch {
    return null;
  }
}

async function checkProblem(page) {
  const shown = await page.value("!document.getElementById('problem').hidden");
  const text = await page.value("document.getElementById('problem').textContent");
  say(shown && text.length > 30, "a document that cannot be read gives a message", text);
  await checkNarrow(page);
}

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
  + "img-src data:";

async function checkContent(page, document) {
  const policy = await page.value("document.querySelector('meta[http-equiv]').content");
  say(policy === POLICY, "the page may load nothing", policy);
  const headings = await page.value("[...document.querySelectorAll('h2')]"
    + ".map((heading) => heading.textContent)");
  say(headings.length >= 5, "the headings are there", headings.filter((text) => text).join(", "));
  const lanes = await page.value("residentReport.lanes().length");
  say(document.records.length === 0 || lanes > 0, "the timeline has lanes", lanes);
  const rows = [await page.value(rowsIn("moves")), await page.value(rowsIn("records"))];
  const wanted = [Math.min(20, document.sites.length || 1),
    Math.min(20, document.records.length || 1)];
  say(String(rows) === String(wanted), "the tables of copies and records have rows",
    rows.join(", "));
  const notice = await page.value("[...document.querySelectorAll('#forgotten:not([hidden])')]"
    + ".map((notice) => notice.textContent).join()");
  say((notice !== "") === (document.records_forgotten > 0), "records that are not shown are named",
    notice.slice(0, 60));
  const found = await page.value("document.querySelectorAll('.finding').length");
  const none = await page.value("document.getElementById('findings').textContent");
  say(found === Math.min(5, document.findings.length) && (found > 0 || none.startsWith("No finding.")),
    "the findings are there", found || none);
  await checkFindings(page);
  const checked = await page.value("[...document.querySelectorAll('#checked:not([hidden]) p')]"
    + ".map((text) => text.textContent).join()");
  const kernels = document.checked?.length;
  say(kernels === undefined ? checked === "" : checked.includes(` of ${kernels} kernel`),
    "it says what the checker of kernels ran over", checked);
  const total = await page.value("document.getElementById('totals').textContent");
  const bytes = String(document.to_device.bytes).replace(/\B(?=(\d{3})+$)/g, "_");
  say(total.includes(bytes), "the totals are those of the document", `${bytes} bytes to devices`);
  await checkMessages(page, document, total);
  await checkMemory(page, document);
}

// Each memory has a chart and the arrays at its peak, and the headline its peak.
async function checkMemory(page, document) {
  const used = (document.memory ?? []).filter((memory) => memory.peak.bytes > 0);
  const text = await page.value("document.getElementById('memory').textContent");
  const charts = await page.value("document.querySelectorAll('svg.memory path').length");
  const peaks = used.map((memory) => String(memory.peak.bytes).replace(/\B(?=(\d{3})+$)/g, "_"));
  const holders = used.flatMap((memory) => memory.peak.holders.slice(0, 1));
  say(charts === used.length && peaks.every((peak) => text.includes(`${peak} byte`))
    && holders.every(({ array }) => /[^\w ]/.test(array) || text.includes(array.slice(0, 20)))
    && (used.length > 0 || text.includes("says nothing of memory")),
    "memory has its peaks and whose it was", `${charts} charts`);
}

// Code in findings is marked up, and the figures stand beside their bars.
async function checkFindings(page) {
  const words = await page.value("document.getElementById('findings').textContent");
  const crossed = await page.value("[...document.querySelectorAll('.compare .value')].filter((each)"
    + " => { const value = each.getBoundingClientRect(); return [...each.closest('.compare')"
    + ".querySelectorAll('.track')].some((track) => { const bar = track.getBoundingClientRect();"
    + " return value.left < bar.right && value.right > bar.left; }); }).length");
  say(!words.includes("`") && crossed === 0, "findings have no raw mark, nor text across a bar",
    `${crossed} across`);
}

// Each kind of record has its fields in words, none by its key in JSON.
async function checkFields(page, document) {
  const raw = [];
  for (const kind of new Set(document.records.map((record) => record.kind))) {
    const index = document.records.findIndex((record) => record.kind === kind);
    await page.value(`residentReport.select(${index})`);
    const labels = await page.value("[...document.querySelectorAll('#details dt')]"
      + ".map((label) => label.textContent)");
    raw.push(...labels.filter((label, place) => /^[a-z]|_/.test(label)
      || labels.indexOf(label) !== place).map((label) => `${kind}: ${label}`));
  }
  say(raw.length === 0, "all fields of records have words", raw.join(", "));
}

// Messages between processes are in the totals, the table and the summary, if there are any.
async function checkMessages(page, document, total) {
  const count = document.sent?.count ?? 0;
  if (count === 0) return say(!total.includes("other processes"), "no message is counted");
  const rows = await page.value("document.getElementById('moves').textContent");
  const summary = await page.value("document.getElementById('summary').textContent");
  say(total.includes("to other processes") && total.includes(`${count} messages`)
    && /host \u2192 rank \d/.test(rows.replace(/[\u2068\u2069]/g, ""))
    && summary.startsWith(`Rank ${document.rank} of ${document.ranks} on `),
    "messages have their totals and their peers", summary.slice(0, 40));
}

// Finds the middle record that is drawn and clicks on it.
async function checkClick(page, document) {
  const index = document.records.findIndex((record, place) => place >= document.records.length / 2
    && record.kind === "copy");
  const { from, to } = await page.value("residentReport.view()");
  const time = document.records[index].started_ns ?? document.records[index].queued_ns;
  await page.value("document.getElementById('timeline').scrollIntoView({ block: 'center' })");
  await page.value(`residentReport.setView(${time - 3000}, ${time + 60000})`);
  await page.settled();
  const place = await page.value(`residentReport.positionOf(${index})`);
  if (place === null) return say(false, "a click on a bar shows its record", "bar not in view");
  await page.click(place.x, place.y);
  const chosen = await page.value("residentReport.selected()");
  const text = await page.value("document.getElementById('details').textContent");
  const size = String(document.records[index].bytes).replace(/\B(?=(\d{3})+$)/g, "_");
  say(chosen === index && text.includes(`${size} bytes`), "a click on a bar shows its record",
    `record ${chosen + 1}`);
  await page.value(`residentReport.setView(${from}, ${to})`);
}

async function checkRelation(page, document) {
  const index = document.records.findIndex((record) => record.kind === "copy"
    && document.records.some((other) => other.kind === "launch" && other.id === record.launch));
  if (index < 0) return;
  await page.value(`residentReport.select(${index})`);
  await page.value("[...document.querySelectorAll('#details dl .link')].at(-1).click()");
  const launch = await page.value("residentReport.selected()");
  const back = await page.value("[...document.querySelectorAll('#details dl .link')].map((link) => "
    + "{ link.click(); const now = residentReport.selected(); residentReport.select("
    + `${launch}); return now; })`);
  say(document.records[launch].kind === "launch" && back.includes(index),
    "a copy links to the launch that caused it, and back", `${index + 1} and ${launch + 1}`);
}

async function checkKeys(page, document) {
  await page.value("residentReport.select(-1); document.getElementById('timeline').focus()");
  await page.press("0", "0");
  const before = await page.value("residentReport.view()");
  for (const text of ["+", "+"]) await page.press(text, text);
  const near = await page.value("residentReport.view()");
  await page.press("ArrowRight");
  const moved = await page.value("residentReport.view()");
  await page.press("0", "0");
  const all = await page.value("residentReport.view()");
  say(near.to - near.from < 0.5 * (before.to - before.from) && moved.from > near.from
    && all.to === before.to, "the keys zoom, move and show all");
  await checkSteps(page, document);
}

async function checkSteps(page) {
  const steps = [];
  for (const text of ["n", "n", "n", "p"]) {
    await page.press(text, text);
    steps.push(await page.value("residentReport.selected()"));
  }
  await page.press("Escape");
  await page.press("Enter", "\r");
  const entered = await page.value("residentReport.selected()");
  const said = await page.value("document.getElementById('announcement').textContent");
  say(steps[1] === steps[0] + 1 && steps[3] === steps[1] && entered >= 0 && said.length > 10,
    "the keys step through the records, which are announced", said.slice(0, 70));
}

async function checkWheel(page) {
  await page.value("residentReport.setView(0, residentReport.view().most)");
  await page.value("document.getElementById('timeline').scrollIntoView({ block: 'center' })");
  await new Promise((settle) => setTimeout(settle, 300));
  const box = await page.value("(() => { const b = document.getElementById('timeline')"
    + ".getBoundingClientRect(); return { x: b.x + b.width * 0.7, y: b.y + 60 }; })()");
  const before = await page.value("residentReport.view()");
  await page.send("Input.dispatchMouseEvent",
    { type: "mouseWheel", ...box, deltaX: 0, deltaY: -240 });
  await page.settled();
  const after = await page.value("residentReport.view()");
  say(after.to - after.from < before.to - before.from, "the wheel zooms");
  await checkDrag(page, box, after);
  await checkPinch(page, box);
}

async function checkDrag(page, { x, y }, before) {
  const mouse = (type, place) => page.send("Input.dispatchMouseEvent",
    { type, x: place, y, button: "left", buttons: 1, clickCount: 1 });
  await mouse("mousePressed", x);
  await mouse("mouseMoved", x - 30);
  await mouse("mouseMoved", x - 90);
  await mouse("mouseReleased", x - 90);
  await page.settled();
  const after = await page.value("residentReport.view()");
  say(after.from > before.from, "a drag moves");
}

async function checkPinch(page, { x, y }) {
  const before = await page.value("residentReport.view()");
  const touch = (type, ...places) => page.send("Input.dispatchTouchEvent",
    { type, touchPoints: places.map((place, id) => ({ x: place, y, id })) });
  await touch("touchStart", x - 40);
  await touch("touchStart", x - 40, x + 40);
  await touch("touchMove", x - 70, x + 70);
  await touch("touchMove", x - 120, x + 120);
  await touch("touchEnd");
  await page.settled();
  const after = await page.value("residentReport.view()");
  say(after.to - after.from < 0.7 * (before.to - before.from), "a pinch zooms");
}

async function checkSorting(page, document) {
  const bytes = "[...document.querySelectorAll('#moves tbody tr')].map((row) => "
    + "Number(row.children[1].textContent.replaceAll('_', '')))";
  const down = await page.value(bytes);
  await page.value("document.querySelectorAll('#moves th button')[1].focus()");
  await page.press("Enter", "\r");
  const up = await page.value(bytes);
  const order = await page.value("document.querySelectorAll('#moves th')[1].ariaSort");
  const largest = Math.max(...document.sites.map((site) => site.bytes));
  say(down[0] === largest && up.at(0) <= up.at(-1) && order === "ascending",
    "the table of copies begins with the largest and sorts by key", `${down[0]}, then ${up[0]}`);
  const groups = [];
  for (const group of ["array", "device", "stream", "site"]) {
    await page.value(`document.querySelector('#group [value=${group}]').click()`);
    groups.push(`${group} ${await page.value(rowsIn("moves"))}`);
  }
  say(groups.every((text) => !text.endsWith(" 0")), "the copies can be grouped", groups.join(", "));
}

async function checkFilter(page, document) {
  const site = document.sites[0].site;
  const type = (text) => page.value("(() => { const input = "
    + "document.getElementById('moves-filter');"
    + `input.value = ${JSON.stringify(text)}; input.dispatchEvent(new Event('input')); })()`);
  await type(site);
  await new Promise((settle) => setTimeout(settle, 250));
  const caption = await page.value("document.querySelector('#moves caption').textContent");
  await type("");
  await new Promise((settle) => setTimeout(settle, 250));
  say(document.sites.length === 1 || caption.includes(" of "), "the filter of copies works",
    caption);
}

async function checkNarrow(page) {
  await page.size(360, 740, 2);
  const width = await page.value("document.documentElement.scrollWidth");
  const wide = await page.value("[...document.querySelectorAll('body *')].filter((each) => "
    + "each.getBoundingClientRect().right > 361 && !each.closest('.scroll, #sections, .unseen'))"
    + ".map((each) => each.tagName + '#' + each.id + '.' + each.className).slice(0, 5)");
  say(width <= 360 && wide.length === 0, "nothing is wider than a screen of 360 pixels",
    [width, ...wide].join(" "));
  await page.size(390, 844, 2);
  const key = await page.value("Math.round(document.querySelector('#moves [aria-sort=descending]')"
    + "?.getBoundingClientRect().right ?? 0)");
  say(key <= 390, "the column by which copies are sorted is on a phone's screen", `up to ${key}`);
  await checkAxis(page);
  await page.size(1280, 900);
}

// No time at a tick is cut off, however the view ends.
async function checkAxis(page) {
  const cut = [];
  const { from, to, most } = await page.value("residentReport?.view() ?? {}").catch(() => ({}));
  if (most === undefined) return;
  for (let turn = 0; turn < 20; turn += 1) {
    await page.value(`residentReport.setView(0, ${most * (0.4 + turn / 40)})`);
    await page.settled();
    const width = await page.value("residentReport.width()");
    const axis = await page.value("residentReport.axis()");
    cut.push(...axis.filter(({ left, right }) => left < 0 || right > width - 2));
    if (axis.length === 0) cut.push({ text: "no time" });
  }
  await page.value(`residentReport.setView(${from}, ${to})`);
  say(cut.length === 0, "no time at a tick is cut off", cut.map(({ text }) => text).join(", "));
}

// Contrast of text and of the colours of the bars against what is behind them.
const CONTRAST = `(() => {
  const style = getComputedStyle(document.documentElement);
  const part = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (name) => {
    const [red, green, blue] = style.getPropertyValue(name).trim().slice(1).match(/../g)
      .map((each) => part(parseInt(each, 16) / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((left, right) => left - right);
    return (high + 0.05) / (low + 0.05);
  };
  const bars = ["--to-device", "--to-host", "--between", "--launch", "--wait"];
  return { text: Math.min(...["--page", "--surface", "--band", "--notice", "--problem"]
      .flatMap((back) => [contrast("--text", back), contrast("--muted", back)])),
    bars: Math.min(...bars.map((bar) => contrast(bar, "--surface"))),
    onBars: Math.min(...bars.map((bar) => contrast(bar, "--on-bar"))) };
})()`;

// The red of a pixel of the timeline's background, read from a copy made for reading.
const PIXEL = `(() => {
  const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  copy.drawImage(document.getElementById("timeline"), 0, 0);
  return copy.getImageData(3, 20, 1, 1).data[0];
})()`;

// A pixel of the canvas must take the colour of the scheme.
async function checkSchemes(page) {
  const backs = [];
  for (const scheme of ["light", "dark"]) {
    await page.scheme(scheme);
    await page.settled();
    const found = await page.value(CONTRAST);
    const figures = Object.values(found).map((value) => value.toFixed(1)).join(", ");
    say(found.text >= 4.5 && found.bars >= 3 && found.onBars >= 4.5,
      `${scheme}: contrast of text, of bars, of text on bars`, figures);
    backs.push(await page.value(PIXEL));
  }
  say(backs[0] > 200 && backs[1] < 60, "both colour schemes are drawn", backs.join(", "));
  await page.scheme("light");
}

async function checkHostile(page, document) {
  const name = document.arrays.map((array) => array.name).find((each) => each.includes("<script>"));
  if (name === undefined) return;
  const pwned = await page.value("String(window.pwned)");
  const index = document.records.findIndex((record) => record.name === name);
  await page.value(`residentReport.select(${index})`);
  const literal = "<script>window.pwned=1</script>\"'&";
  const text = await page.value("document.querySelector('#details dl').innerText");
  const table = await page.value("document.getElementById('moves').innerText");
  const shows = text.includes(literal) && table.includes(literal)
    && text.includes("\u05e9\u05dc\u05d5\u05dd");
  say(pwned === "undefined" && shows, "hostile names are shown as text", `window.pwned ${pwned}`);
  const scripts = await page.value("document.scripts.length + document.images.length");
  say(scripts === 2, "names made no elements", `${scripts} scripts and images`);
}

// Zooms in and moves along, a step per frame; the time between frames and that of drawing.
const FRAMES = `new Promise((done) => {
  const all = residentReport.view();
  const span = all.most - all.least;
  const gaps = [];
  const draws = [];
  let last = 0;
  const step = (now) => {
    if (last > 0) gaps.push(now - last);
    if (gaps.length > 1) draws.push(residentReport.drawMilliseconds());
    last = now;
    const turn = gaps.length;
    if (turn >= 300) return done({ gaps: gaps.slice(2), draws });
    const width = span * Math.max(1e-5, Math.abs(Math.cos(turn / 24)) ** 4);
    const from = all.least + (span - width) * (turn / 300);
    residentReport.setView(from, from + width);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})`;

async function checkFrames(page, document) {
  await page.size(1440, 1000);
  await page.value("document.getElementById('timeline').scrollIntoView({ block: 'center' })");
  await page.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await taskSeconds(page);
  const { gaps, draws } = await page.value(FRAMES);
  const busy = (1000 * (await taskSeconds(page) - before)) / 300;
  const figures = (times) => {
    const sorted = times.slice().sort((left, right) => left - right);
    const at = (share) => sorted[Math.floor(share * (sorted.length - 1))].toFixed(1);
    return `median ${at(0.5)}, 95 % ${at(0.95)}, maximum ${at(1)} ms`;
  };
  say(busy < 16, `a frame with ${document.records.length} records takes less than 16 ms of `
    + "processor time", `${busy.toFixed(1)} ms`);
  console.log(`       script of a frame: ${figures(draws)}`);
  console.log(`       between frames: ${figures(gaps)} (longer when other programs run)`);
}

// The processor time that the page's main thread has used: other programs do not add to it.
async function taskSeconds(page) {
  const { metrics } = await page.send("Performance.getMetrics");
  return metrics.find((metric) => metric.name === "TaskDuration").value;
}

async function checkAll(page, document, url) {
  if (document?.version !== 1) await checkProblem(page);
  else await checkPage(page, document);
  say(page.complaints.length === 0, "no error, no warning, no exception",
    page.complaints.slice(0, 3).join(" | "));
  const others = page.requests.filter((each) => each !== url && !each.startsWith("data:"));
  say(others.length === 0, "no request beside the file itself", others.slice(0, 3).join(" "));
}

async function checkPage(page, document) {
  await checkContent(page, document);
  if (document.records.length > 0) {
    await checkClick(page, document);
    await checkRelation(page, document);
    await checkFields(page, document);
    await checkKeys(page, document);
    await checkWheel(page);
    await checkHostile(page, document);
  }
  if (document.sites.length > 0) {
    await checkSorting(page, document);
    await checkFilter(page, document);
  }
  await checkNarrow(page);
  await checkSchemes(page);
  if (process.argv.includes("--frames")) await checkFrames(page, document);
}

const option = (name, otherwise) => {
  const place = process.argv.indexOf(name);
  return place < 0 ? otherwise : process.argv[place + 1];
};

async function takeScreenshot(page, file) {
  page.width = Number(option("--width", 1280));
  await page.size(page.width, Number(option("--height", 900)));
  await page.scheme(process.argv.includes("--dark") ? "dark" : "light");
  const before = option("--run", "");
  if (before !== "") await page.value(before);
  const chosen = Number(option("--select", -1));
  if (chosen >= 0) await page.value(`residentReport.select(${chosen})`);
  await page.settled();
  await new Promise((settle) => setTimeout(settle, 250));
  await page.screenshot(file, process.argv.includes("--full"));
}

async function main() {
  const file = resolve(process.argv[2]);
  const url = pathToFileURL(file).href;
  const browser = new Browser();
  try {
    const page = await Page.open(browser);
    await page.size(1280, 900);
    await page.scheme("light");
    await page.load(url);
    const picture = option("--screenshot", "");
    if (picture !== "") await takeScreenshot(page, picture);
    else await checkAll(page, readDocument(file), url);
  } finally {
    await browser.close();
  }
  process.exitCode = failures > 0 ? 1 : 0;
}

await main();
