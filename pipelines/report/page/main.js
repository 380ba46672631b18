// The page: what is chosen, and what has to be drawn anew for it.
"use strict";
const state = { range: WHOLE, base: null, kind: "produce", measure: "p99", drag: "range", mark: null, filter: "", times: [1, 1] };
let picture = null;
const SECTIONS = [
  ["findings", drawFindings, true], ["operations", drawOperations, true], ["blame", drawBlame, true], ["matrix", drawMatrix, true], ["parts", drawParts, true], ["latency", drawLatency, true],
  ["partitions", drawPartitions, true], ["requests", drawRequests, true], ["moves", drawFailovers, true], ["moments", drawMoments, true], ["restarts", drawRestarts, true], ["clients", drawClients, true],
  ["rules", drawRules, false], ["logs", drawLogs, false],
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
// ---------------------------------------------------------------- the range, in words
function tellRange() {
  const place = byId("rangeline");
  if (!TIME) { put(place, "No operation and no request in these logs: there are no figures to choose a range of."); return; }
  const [start, end] = rangeTimes(state.range), whole = sameRange(state.range, WHOLE);
  const { whole: figures } = operationsOf(state.range, "produce"), worst = blameRows(state.range, "produce").find((row) => NODES[row.place].broker_id !== -1);
  byId("from").value = iso(start).slice(0, 19);
  byId("until").value = iso(end).slice(0, 19);
  byId("reset").disabled = whole && !state.base;
  put(place, h("b", null, whole ? "All of it" : `${clock(start)} to ${clock(end)}`), ` (${span(end - start)}): ${count(figures.operations)} acks=all produces, ${count(figures.with_error)} with an error, ${count(figures.slow)} slow; p50 ${ms(figures.total.quantile(0.5))}, p99 ${ms(p99Of(state.range, "produce", figures))} ms`,
    worst && figures.slow_wait_us ? [`; most slow waiting was for broker `, nodeChip(worst.place), ` (${share(worst.share)})`] : "", ".",
    whole ? "" : [" Verdict, rules and coverage are of all logs. ", command(`highwater report --from ${iso(start).slice(0, 19)}Z --until ${iso(end).slice(0, 19)}Z`)],
    state.base ? h("div", null, "Beside it the baseline ", h("b", null, rangeTimes(state.base).map((time) => clock(time)).join(" to ")), ": tables are sorted by change; changes of counts are per second. ", command("highwater compare " + [state.base, state.range].map((range) => ofTimes(range).join("..")).join(" "))) : "");
}
function readTimes(event) {
  event.preventDefault();
  const wanted = ["from", "until"].map((id) => Date.parse(byId(id).value + "Z"));
  const message = byId("rangeproblem");
  if (wanted.some(Number.isNaN) || wanted[0] >= wanted[1]) { message.textContent = "Give two times, the first one earlier."; return; }
  message.textContent = "";
  const range = [Math.floor((wanted[0] - TIME.start) / TIME.step), Math.ceil((wanted[1] - TIME.start) / TIME.step)].map((at) => Math.max(0, Math.min(TIME.number, at)));
  if (range[0] < range[1]) choose(event.submitter && event.submitter.id === "asbase" ? "base" : "range", range);
  else message.textContent = "The logs have nothing there.";
}
// An incident's window, with as much before and after it as it lasts: one without an end lasts to the end of the logs.
function chooseTimes(from, until) {
  if (!TIME) return;
  const start = Date.parse(from), end = until ? Date.parse(until) : TIME.start + TIME.step * TIME.number, margin = Math.max(TIME.step, until ? end - start : TIME.step);
  const range = [Math.floor((start - margin - TIME.start) / TIME.step), Math.ceil((end + margin - TIME.start) / TIME.step)].map((at) => Math.max(0, Math.min(TIME.number, at)));
  if (range[0] < range[1]) { choose("range", range); byId("timeline").scrollIntoView({ block: "start" }); }
}
// ---------------------------------------------------------------- the address: what is chosen can be sent on
function keepInAddress() {
  const id = decodeURIComponent(location.hash.slice(1)).split(";")[0];
  const parts = [id];
  if (TIME && !sameRange(state.range, WHOLE)) parts.push("range=" + state.range.join("-"));
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
  if (!target && /^(finding|request|partition)-/.test(id)) {
    // It may be among the rows that are not shown yet, or outside the range.
    for (let turn = 0; turn < 50 && !target; turn++) {
      const buttons = [...document.querySelectorAll("#in-findings .more button, #in-requests .more button, #in-partitions .more button")];
      if (!buttons.length) break;
      buttons.forEach((button) => button.click());
      target = byId(id);
    }
    if (!target && !sameRange(state.range, WHOLE)) { choose("range", WHOLE); target = byId(id); }
  }
  if (!target) return;
  for (let outer = target; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
  if (target.openDetails) target.openDetails();
  document.querySelectorAll(".target").forEach((one) => one.classList.remove("target"));
  target.classList.add("target");
  target.scrollIntoView({ block: "start" });
}
// ---------------------------------------------------------------- marks and filter
function decorate(place) {
  for (const element of place.querySelectorAll("[data-mark]")) {
    const marked = state.mark !== null && element.getAttribute("data-mark") === state.mark;
    element.classList.toggle("marked", marked);
    if (element.tagName === "BUTTON") element.setAttribute("aria-pressed", String(marked));
  }
  for (const row of place.querySelectorAll("tbody tr, details.finding")) {
    row.classList.toggle("hasmark", state.mark !== null && [...row.querySelectorAll("[data-mark]")].some((one) => one.getAttribute("data-mark") === state.mark));
    if (!row.classList.contains("opened")) row.classList.toggle("filtered", state.filter !== "" && !row.textContent.toLowerCase().includes(state.filter));
  }
}
function mark(name) {
  state.mark = state.mark === name ? null : name;
  byId("marked").textContent = state.mark ? seen("marked: " + (state.mark[0] === "b" ? "broker " : "topic ") + state.mark.slice(2)) : "";
  byId("unmark").hidden = !state.mark;
  decorate(document.body);
}
// ---------------------------------------------------------------- the chart as a table
function drawChartTable() {
  const place = byId("charttable");
  if (place.hidden || !TIME) return;
  const cells = perInterval(state.kind, "all").get(0) || [], leaders = perInterval(state.kind, "leader"), replicas = perInterval(state.kind, "replica");
  const rows = [];
  for (let at = state.range[0]; at < state.range[1]; at++) if (cells[at]) rows.push({ key: String(at), at, figures: cells[at] });
  const of = (found, at) => [...found].filter(([, those]) => those[at]).map(([node, those], place) => [place ? " " : "", nodeChip(node), " " + ms(those[at].waits.quantile(0.99))]);
  put(place, table([
    column("Interval from", (row) => row.at, (value) => clock(TIME.start + value * TIME.step)), number(KINDS[state.kind], (row) => row.figures.operations), number("with an error", (row) => row.figures.with_error), number("slow", (row) => row.figures.slow_all),
    duration("wait p50, ms", (row) => row.figures.waits.quantile(0.5)), duration("wait p99, ms", (row) => row.figures.waits.quantile(0.99)), duration("beyond " + SLOW_MS + " ms, ms", (row) => row.figures.slow_us_all / 1000), column("p99 by leader", (row) => row.at, (value) => of(leaders, value), { plain: true }), column("p99 by awaited replica", (row) => row.at, (value) => of(replicas, value), { plain: true }),
  ], { rows, wide: true, limit: 60, note: "Waits of all answers, errors included. " + about() }));
}
// ---------------------------------------------------------------- start
function start() {
  const id = followAddress();
  const on = (name, event, does) => byId(name) && byId(name).addEventListener(event, does);
  document.body.addEventListener("click", (event) => {
    const marked = event.target.closest && event.target.closest("[data-mark]");
    if (marked) mark(marked.getAttribute("data-mark"));
  });
  on("unmark", "click", () => mark(state.mark));
  on("filter", "input", (event) => { state.filter = event.target.value.trim().toLowerCase(); decorate(document.body); });
  on("theme", "click", () => { const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; document.documentElement.dataset.theme = dark ? "light" : "dark"; });
  on("print", "click", () => print());
  on("range", "submit", readTimes);
  on("reset", "click", () => { state.base = null; choose("range", WHOLE); });
  on("swap", "click", () => { if (state.base) { const before = state.range; state.range = state.base; state.base = before; choose(); } });
  on("kind", "change", (event) => { state.kind = event.target.value; picture.draw(); drawSections(false); drawChartTable(); });
  on("measure", "change", (event) => { state.measure = event.target.value; picture.draw(); });
  on("drag", "change", (event) => { state.drag = event.target.value; });
  on("astable", "click", (event) => { const place = byId("charttable"); place.hidden = !place.hidden; event.target.setAttribute("aria-pressed", String(!place.hidden)); drawChartTable(); });
  for (const button of document.querySelectorAll("button.copy[data-copy]")) button.addEventListener("click", () => copy(byId(button.getAttribute("data-copy")).textContent, button));
  for (const button of document.querySelectorAll("button.choose")) button.addEventListener("click", () => chooseTimes(button.dataset.from, button.dataset.until));
  addEventListener("hashchange", () => goTo(decodeURIComponent(location.hash.slice(1)).split(";")[0]));
  addEventListener("keydown", keys);
  addEventListener("beforeprint", () => document.querySelectorAll("details.finding").forEach((one) => { one.open = true; }));
  if (TIME) {
    byId("intervals").textContent = `Ranges are made of intervals of ${TIME.step / 1000} s.`;
    picture = new Picture(byId("picture"), state, choose);
    picture.draw();
  } else byId("timeline").classList.add("empty");
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
  const by = event.key === "ArrowLeft" ? -1 : 1, [first, last] = sameRange(state.range, WHOLE) ? [by > 0 ? -1 : TIME.number, by > 0 ? 0 : TIME.number + 1] : state.range;
  const range = event.shiftKey ? [Math.max(0, first), Math.max(Math.max(0, first) + 1, Math.min(TIME.number, last + by))] : [first + by, last + by];
  if (range[0] >= 0 && range[1] <= TIME.number) choose("range", range);
}
start();
