// The page: what is chosen, and what has to be drawn anew for it.
"use strict";
const state = { range: WHOLE, base: null, kind: "produce", measure: "p99", drag: "range", mark: null, filter: "", fields: new Set(), times: [1, 1] };
const isWhole = () => sameRange(state.range, WHOLE);
let picture = null;
const SECTIONS = [
  ["rest", drawRest, true], ["incidents", drawIncidents, true], ["findings", drawFindings, true], ["operations", drawOperations, true], ["blame", drawBlame, true], ["matrix", drawMatrix, true], ["parts", drawParts, true], ["latency", drawLatency, true],
  ["partitions", drawPartitions, true], ["requests", drawRequests, true], ["moves", drawFailovers, true], ["restarts", drawRestarts, true], ["clients", drawClients, true],
  ["readers", drawReaders, false], ["rules", drawRules, false], ["logs", drawLogs, false],
];

function drawSections(all) {
  state.times = [TIME ? rangeSeconds(state.range) : 1, TIME && state.base ? rangeSeconds(state.base) : 1];
  for (const [id, draw, ranged] of SECTIONS) {
    const place = byId("in-" + id);
    if (place && (all || ranged)) draw(place, state);
  }
  decorate(document.body);
}
function choose(what, value) {
  if (what === "range") state.range = value || WHOLE;
  else if (what === "base") state.base = value;
  tellRange();
  if (picture) picture.show();
  drawSections(false);
  drawChartTable();
  keepInAddress();
}
// --- the range, in words
function tellRange() {
  const place = byId("rangeline");
  if (!TIME) { put(place, "No line of these logs has a time: there is nothing to choose a range of."); return; }
  const [start, end] = rangeTimes(state.range), whole = isWhole();
  const { whole: figures } = operationsOf(state.range, "produce"), worst = blameRows(state.range, "produce").find((row) => NODES[row.place].broker_id !== -1);
  document.documentElement.toggleAttribute("data-ranged", !whole);
  for (const button of every(".choose")) {
    button.closest("li").classList.toggle("beyond", !inRange(state.range, button.dataset.from, button.dataset.until || null));
    button.setAttribute("aria-pressed", String(!whole && sameRange(rangeOf(button.dataset), state.range)));
  }
  every(".card").forEach((card, at) => card.classList.toggle("beyond", !isWithin(CHAINS[at], state.range)));
  byId("inrange").textContent = whole ? "" : `${count(CHAINS.filter((chain) => isWithin(chain, state.range)).length)} of ${count(CHAINS.length)} in the range`;
  byId("from").value = iso(start).slice(0, 19);
  byId("until").value = iso(end).slice(0, 19);
  byId("reset").disabled = whole && !state.base;
  put(place, h("b", null, whole ? "Whole log" : `${clock(start)} to ${clock(end)}`), ` (${span(end - start)}): ` + (figures.operations ? `${count(figures.operations)} acks=all produces, ${count(figures.with_error)} with an error, ${count(figures.slow)} slow; p50 ${ms(figures.total.quantile(0.5))}, p99 ${ms(p99Of(state.range, "produce", figures))} ms` : "no acks=all produce"),
    worst && figures.slow_wait_us ? [`; most slow waiting was for broker `, nodeChip(worst.place), ` (${share(worst.share)})`] : "", ".",
    whole ? "" : [" ", command(`highwater report --from ${iso(start).slice(0, 19)}Z --until ${iso(end).slice(0, 19)}Z`)],
    state.base ? h("div", null, "Beside it the baseline ", h("b", null, rangeTimes(state.base).map((time) => clock(time)).join(" to ")), ": tables are sorted by change; changes of counts are per second. ", command("highwater compare " + [state.base, state.range].map((range) => ofTimes(range).join("..")).join(" "))) : "");
}
function readTimes(event) {
  event.preventDefault();
  if (!TIME) return;
  const from = timeOf(byId("from").value, TIME.start), until = timeOf(byId("until").value, from), message = byId("rangeproblem");
  if (!(from < until)) { message.textContent = "Write two times of UTC, the first one earlier, such as 15:56:58 or 2026-11-20 15:56:58."; return; }
  const range = intervalsOf(from, until);
  message.textContent = range[0] < range[1] ? "" : `The logs have nothing there: they are of ${iso(TIME.start).slice(0, 19)} to ${iso(rangeTimes(WHOLE)[1]).slice(0, 19)}.`;
  if (range[0] < range[1]) choose(event.submitter && event.submitter.id === "asbase" ? "base" : "range", range);
}
// A time of UTC as people write it; one without a date is that of the day of `after`, or of the next one where the logs reach so far.
function timeOf(text, after) {
  const [, date, time] = /^\s*(\d{4}-\d\d-\d\d)?[T ]*(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?\s*(?:Z|UTC)?\s*$/i.exec(text) || [];
  if (Number.isNaN(after) || (!date && !time)) return NaN;
  const at = Date.parse(`${date || iso(after).slice(0, 10)}T${(time || "00:00").replace(",", ".")}Z`);
  return !date && at < after && at + 86400000 < rangeTimes(WHOLE)[1] ? at + 86400000 : at;
}
const intervalsOf = (from, until) => [Math.floor((from - TIME.start) / TIME.step), Math.ceil((until - TIME.start) / TIME.step)].map((at) => Math.max(0, Math.min(TIME.number, at)));
// An incident's window, with as much before and after it as it lasts: one without an end lasts to the end of the logs.
function rangeOf({ from, until }) {
  const start = Date.parse(from), end = until ? Date.parse(until) : TIME.start + TIME.step * TIME.number, margin = Math.max(TIME.step, until ? end - start : TIME.step);
  return intervalsOf(start - margin, end + margin);
}
function chooseIncident(window) {
  const range = TIME ? rangeOf(window) : WHOLE;
  if (range[0] < range[1]) choose("range", range);
  const box = byId("picture").getBoundingClientRect();
  if (box.top < 0 || box.top > innerHeight - 200) byId("timeline").scrollIntoView({ block: "start" });
}
// --- the address: what is chosen can be sent on
// Texts of the page itself, as they came: in UTC.
let texts = null;
function showZone(local) {
  ZONE.local = local;
  byId("zone").textContent = local ? "local time" : "UTC";
  byId("zone").setAttribute("aria-pressed", String(local));
  if (texts === null) {
    const walker = document.createTreeWalker(byId("summary").parentElement, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest("code, form, [hidden], [id^=in-], #picture, #rangeline") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
    texts = [];
    const start = TIME ? iso(TIME.start) : "";
    let card = null, at = start;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const box = node.parentElement.closest(".card, .headline");
      if (box !== card) { card = box; at = start; }
      const chosen = node.parentElement.closest("li") && node.parentElement.closest("li").querySelector(".choose");
      at = (/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d/.exec(node.data) || [chosen ? chosen.dataset.from : at])[0];
      if (/\d\d:\d\d|UTC/.test(node.data)) texts.push([node, node.data, at.replace(" ", "T").replace(/:\d\d$/, "$&Z")]);
    }
  }
  for (const [node, text, at] of texts) node.data = told(text, at);
  tellRange();
  if (picture) picture.draw();
  drawSections(true);
  drawChartTable();
}
function keepInAddress() {
  const id = decodeURIComponent(location.hash.slice(1)).split(";")[0];
  const parts = [id];
  if (TIME && !isWhole()) parts.push("range=" + state.range.join("-"));
  if (state.base) parts.push("base=" + state.base.join("-"));
  try { history.replaceState(null, "", "#" + parts.join(";")); } catch (error) { /* some viewers of attachments allow no change of the address */ }
}
function followAddress() {
  const [id, ...chosen] = decodeURIComponent(location.hash.slice(1)).split(";");
  for (const part of chosen) {
    const match = /^(range|base)=(\d+)-(\d+)$/.exec(part);
    if (match && TIME && Number(match[2]) < Number(match[3]) && Number(match[3]) <= TIME.number) state[match[1]] = [Number(match[2]), Number(match[3])];
  }
  return id;
}
function goTo(id) {
  if (!id) return;
  let target = byId(id);
  if (!target && /^(incident|finding|request|partition)-/.test(id)) {
    // It may be among the rows that are not shown yet, or outside the range.
    for (let turn = 0; turn < 50 && !target; turn++) {
      const buttons = every(".more button");
      if (!buttons.length) break;
      buttons.forEach((button) => button.click());
      target = byId(id);
    }
    if (!target && !isWhole()) { choose("range", WHOLE); target = byId(id); }
  }
  if (!target) return;
  for (let outer = target; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
  if (target.openDetails) target.openDetails();
  every(".target").forEach((one) => one.classList.remove("target"));
  target.classList.add("target");
  target.scrollIntoView({ block: "start" });
}
// --- marks
function decorate(place) {
  for (const element of place.querySelectorAll("[data-mark]")) {
    const marked = state.mark !== null && element.getAttribute("data-mark") === state.mark;
    element.classList.toggle("marked", marked);
    if (element.tagName === "BUTTON") element.setAttribute("aria-pressed", String(marked));
  }
  for (const row of place.querySelectorAll("tbody tr, details.finding")) {
    row.classList.toggle("hasmark", state.mark !== null && [...row.querySelectorAll("[data-mark]")].some((one) => one.getAttribute("data-mark") === state.mark));
  }
}
function mark(name) {
  state.mark = state.mark === name ? null : name;
  byId("marked").textContent = state.mark ? seen("marked: " + (state.mark[0] === "b" ? "broker " : "topic ") + state.mark.slice(2)) : "";
  byId("unmark").hidden = !state.mark;
  decorate(document.body);
}
// --- the chart as a table
function drawChartTable() {
  const place = byId("charttable");
  if (place.hidden || !TIME) return;
  const cells = perInterval(state.kind, "all").get(0) || [], leaders = perInterval(state.kind, "leader"), replicas = perInterval(state.kind, "replica");
  const rows = [];
  for (let at = state.range[0]; at < state.range[1]; at++) if (cells[at]) rows.push({ key: String(at), at, figures: cells[at] });
  const of = (found, at) => [...found].filter(([, those]) => those[at]).map(([node, those], place) => [place ? " " : "", nodeChip(node), " " + ms(those[at].waits.quantile(0.99))]);
  put(place, table([
    column("Interval from", "at", (value) => clock(TIME.start + value * TIME.step)), number(KINDS[state.kind], (row) => row.figures.operations), number("with an error", (row) => row.figures.with_error), number("slow", (row) => row.figures.slow_all),
    duration("wait p50, ms", (row) => row.figures.waits.quantile(0.5)), duration("wait p99, ms", (row) => row.figures.waits.quantile(0.99)), duration("beyond " + SLOW_MS + " ms, ms", (row) => row.figures.slow_us_all / 1000), column("p99 by leader", "at", (value) => of(leaders, value), { plain: true }), column("p99 by closing replica", "at", (value) => of(replicas, value), { plain: true }),
  ], { rows, wide: true, limit: 60, note: "Waits of all answers, errors included. " + about() }));
}
// --- start
function start() {
  const id = followAddress();
  const on = (name, event, does) => byId(name) && byId(name).addEventListener(event, does);
  document.body.addEventListener("click", (event) => {
    const marked = event.target.closest && event.target.closest("[data-mark]");
    if (marked) mark(marked.getAttribute("data-mark"));
  });
  on("unmark", "click", () => mark(state.mark));
  on("filter", "input", (event) => filterBy(event.target.value));
  on("theme", "click", () => { const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; document.documentElement.dataset.theme = dark ? "light" : "dark"; });
  on("print", "click", () => print());
  on("zone", "click", () => showZone(!ZONE.local));
  const lasts = DATA.brokers.map((broker) => Date.parse(broker.last_time)).filter((time) => !Number.isNaN(time));
  if (lasts.length) byId("age").textContent = ` (${ago(Math.max(...lasts), Date.now())})`;
  on("range", "submit", readTimes);
  on("reset", "click", () => { state.base = null; choose("range", WHOLE); });
  on("swap", "click", () => { if (state.base) { const before = state.range; state.range = state.base; state.base = before; choose(); } });
  on("kind", "change", (event) => { state.kind = event.target.value; picture.draw(); drawSections(false); drawChartTable(); });
  on("measure", "change", (event) => { state.measure = event.target.value; picture.draw(); });
  on("drag", "change", (event) => { state.drag = event.target.value; });
  on("astable", "click", (event) => { const place = byId("charttable"); place.hidden = !place.hidden; event.target.setAttribute("aria-pressed", String(!place.hidden)); drawChartTable(); });
  for (const button of every(".command > .copy")) button.addEventListener("click", () => copy(button.parentElement.firstElementChild.textContent, button));
  for (const button of every(".choose")) button.addEventListener("click", () => chooseIncident(button.dataset));
  addEventListener("hashchange", () => goTo(decodeURIComponent(location.hash.slice(1)).split(";")[0]));
  addEventListener("keydown", keys);
  let closed = [];
  addEventListener("beforeprint", () => { closed = every("details.finding:not([open])"); closed.forEach((one) => { one.open = true; }); });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
  if (TIME) {
    picture = new Picture(byId("picture"), state, choose);
    picture.draw();
  }
  byId("timeline").classList.toggle("empty", !CUBES);
  tellRange();
  drawSections(true);
  document.documentElement.dataset.ready = "true";
  goTo(id);
}
// Arrows move the range by one interval where the picture has the focus; with Shift its end moves.
function keys(event) {
  if (event.key === "Escape" && TIME && event.target.tagName !== "INPUT") { state.base = null; choose("range", WHOLE); }
  if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) { event.preventDefault(); byId("filter").focus(); }
  if (event.target !== byId("picture") || !TIME || !/^Arrow(Left|Right)$/.test(event.key)) return;
  event.preventDefault();
  const by = event.key === "ArrowLeft" ? -1 : 1, [first, last] = isWhole() ? [by > 0 ? -1 : TIME.number, by > 0 ? 0 : TIME.number + 1] : state.range;
  const range = event.shiftKey ? [Math.max(0, first), Math.max(Math.max(0, first) + 1, Math.min(TIME.number, last + by))] : [first + by, last + by];
  if (range[0] >= 0 && range[1] <= TIME.number) choose("range", range);
}
start();
