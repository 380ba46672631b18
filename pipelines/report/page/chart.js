// The timeline and the heat strips: one picture with one time axis, and the same bands behind all of it.
"use strict";
// THIN_MAX: rows of chains without a card; further ones overlap in the last row.
const GUTTER = 168, LANE = 20, STRIP = 16, GAP = 26, THIN_MAX = 12;
const MEASURES = {
  p99: { name: "p99 of the wait, ms", get: (figures) => figures.waits.quantile(0.99), show: ms, limit: SLOW_MS },
  p50: { name: "median wait, ms", get: (figures) => figures.waits.quantile(0.5), show: ms, limit: SLOW_MS },
  slow: { name: "waiting beyond " + SLOW_MS + " ms, in all, ms", get: (figures) => figures.slow_us_all / 1000, show: ms, limit: 0 },
  count: { name: "operations", get: (figures) => figures.operations, show: count, limit: null },
};
const GLYPHS = {
  election: ["\u25c6", "elected leader"], unclean_election: ["\u2716", "unclean election"], isr_shrink: ["\u25bc", "left ISRs"], isr_expand: ["\u25b2", "came back into ISRs"],
  controller_elected: ["\u25a0", "became controller"], controller_resigned: ["\u25a1", "resigned as controller"], broker_fenced: ["\u2298", "fenced"], broker_failed: ["\u2298", "found dead"],
  broker_starting: ["\u25cb", "starts"], broker_started: ["\u25cf", "started"], broker_shutting_down: ["\u25d0", "shuts down"], broker_shut_down: ["\u25cc", "shut down"],
  broker_fatal: ["\u2020", "fatal error"], broker_log_dir_failure: ["\u2020", "log directory failed"], broker_zookeeper_expired: ["\u2298", "ZooKeeper session expired"],
};

// Incidents in which a broker wrote nothing, though no line says that it was down.
const FOUND = [["violation", "\u2716", "violation"], ["open", "?", "undecided"], ["observation", "!", "observation"]];

class Picture {
  constructor(place, state, changed) {
    this.place = place;
    this.state = state;
    this.changed = changed;
    this.readout = byId("readout");
    this.cells = {};
    new ResizeObserver(() => this.draw()).observe(place);
  }
  per(side) {
    const key = this.state.kind + side;
    if (!this.cells[key]) this.cells[key] = perInterval(this.state.kind, side);
    return this.cells[key];
  }
  x(time_ms) { return GUTTER + ((time_ms - TIME.start) / (TIME.step * TIME.number)) * this.wide; }
  at(text, otherwise) { return text ? Math.min(GUTTER + this.wide, Math.max(GUTTER, this.x(Date.parse(text)))) : otherwise; }
  interval(x) { return Math.max(0, Math.min(TIME.number - 1, Math.floor(((x - GUTTER) / this.wide) * TIME.number))); }

  draw() {
    const width = Math.max(GUTTER + 120, this.place.clientWidth);
    if (width === this.drawn && this.key === this.state.kind + this.state.measure + ZONE.local) return;
    this.drawn = width;
    this.key = this.state.kind + this.state.measure + ZONE.local;
    this.wide = width - GUTTER - 8;
    this.rows = [];
    const parts = [];
    let y = this.incidents(22, parts);
    for (const broker of brokersOfTimeline()) {
      parts.push(this.life(broker, y));
      this.rows.push({ y, height: LANE, tell: (interval) => this.tellBroker(broker, interval) });
      y += LANE + 4;
    }
    for (const [state, name] of [["offline", "without leader"], ["under_min_isr", "under min.insync.replicas"]]) {
      const windows = CLUSTER.unavailable.filter((window) => window.state === state);
      if (windows.length) { parts.push(this.windows(state, name, windows, y)); y += LANE; }
    }
    if (findingsInTime().length) { parts.push(this.findings(y)); y += LANE; }
    y += 6;
    if (CUBES) { parts.push(this.volume(y)); y += 44; }
    const strips = CUBES ? [["leader", "by leader"], ["replica", "by closing replica"]] : [];
    this.scale = heatScale(strips.flatMap(([side]) => [...this.per(side).values()].flat().map((figures) => this.value(figures))), MEASURES[this.state.measure]);
    for (const [side, title] of strips) {
      y += GAP;
      parts.push(svg("text", { x: 0, y: y - 6, class: "striptitle" }, MEASURES[this.state.measure].name + ", " + title));
      const height = this.strip(side, y, parts);
      y += height;
    }
    this.height = y + 6;
    this.overlay = svg("g", { class: "overlay" });
    this.cursor = svg("line", { class: "cursor", x1: -9, x2: -9, y1: 16, y2: this.height });
    const picture = svg("svg", { width, height: this.height, viewBox: `0 0 ${width} ${this.height}`, role: "img", "aria-label": "Timeline of the cluster with latency by interval; the button Table shows its figures" },
      this.patterns(), this.bands(), this.axis(), parts, this.overlay, this.cursor);
    picture.addEventListener("pointerdown", (event) => this.press(event));
    picture.addEventListener("pointermove", (event) => this.move(event));
    picture.addEventListener("pointerup", (event) => this.release(event));
    picture.addEventListener("pointerleave", () => { this.cursor.setAttribute("x1", -9); this.cursor.setAttribute("x2", -9); });
    picture.addEventListener("dblclick", () => this.changed("range", WHOLE));
    this.picture = picture;
    put(this.place, picture);
    put(byId("legend"), this.legend());
    this.show();
    decorate(this.place);
  }
  value(figures) { return figures && figures.operations ? MEASURES[this.state.measure].get(figures) : null; }
  // All chains of incidents: those of the cards with their numbers, the others as thin bars. Below each are the windows of its effects.
  incidents(y, parts) {
    const ends = [], group = svg("g", { class: "lane" });
    const cards = every(".card"), rest = [];
    for (const { number, head, parts: those } of CHAINS) {
      const card = cards[number - 1], text = `${number}. ${head.word} ${seen(head.sentence)}`;
      const windows = card ? [...card.querySelectorAll(".choose")].map((button) => button.dataset) : [head, ...those].map((part) => ({ from: part.start_time, until: part.end_time || "" }));
      const bars = windows.map(({ from, until }) => { const x = this.at(from); return [x, Math.max(15, this.at(until, GUTTER + this.wide) - x)]; });
      const left = Math.min(...bars.map(([x]) => x)), right = Math.max(...bars.map(([x, width]) => x + width));
      const lanes = card ? ends : rest, free = [...lanes, -1].findIndex((end) => end < left), row = card ? free : Math.min(free, THIN_MAX - 1);
      const top = card ? y + row * 19 : y + ends.length * 19 + row * 7;
      lanes[row] = Math.max(right, lanes[row] || 0);
      const choose = { onpointerdown: (event) => event.stopPropagation(), onclick: () => chooseIncident(windows[0]), class: "incident " + head.class };
      group.append(svg("g", choose, svg("title", null, text), (card ? bars : bars.slice(0, 1)).map(([x, width], place) => svg("rect", { x, width, y: place ? top + 14 : top, height: place ? 2 : card ? 13 : 5, rx: 1 })), card ? svg("text", { x: bars[0][0] + 4, y: top + 10.5 }, number) : ""));
    }
    if (!CHAINS.length) return y;
    group.append(this.label(y - 3, "incidents"));
    parts.push(group);
    return y + ends.length * 19 + rest.length * 7 + 3;
  }
  // All that is drawn, and nothing else.
  legend() {
    const swatch = (name) => svg("svg", { width: 11, height: 11, "aria-hidden": "true" }, svg("rect", { width: 11, height: 11, class: name })), round = (value) => (Math.abs(value) < 10 ? Number(value.toPrecision(2)) : count(Number(value.toPrecision(2))));
    const kinds = new Set(CLUSTER.events.map((event) => event.kind)), states = new Set(CLUSTER.lives.map((life) => life.state)), severities = new Set(findingsInTime().map(([severity]) => severity));
    const symbols = new Map(Object.entries(GLYPHS).filter(([kind]) => kinds.has(kind)).map(([, [glyph, words]]) => [words, glyph]));
    if ([...kinds].some((kind) => !own(GLYPHS, kind))) symbols.set("another event", "\u00b7");
    for (const [severity, glyph, words] of FOUND) if (severities.has(severity)) symbols.set(words, glyph);
    return [
      this.scale.steps.length ? h("span", null, MEASURES[this.state.measure].name + ": ", this.scale.steps.map(([name, from]) => [swatch("cell " + name), round(from) + " "]), "to " + round(this.scale.most)) : "",
      [["up", "up"], ["silent", "did not answer"], ["starting", "starts or stops"], ["down", "down"]].filter(([name]) => states.has(name)).map(([name, words]) => h("span", null, swatch("life " + name), words)),
      [...symbols].map(([words, glyph]) => h("span", null, glyph + " " + words)),
      bandsOfTimeline().filter(([, stretches]) => stretches.length).map(([name, , words]) => h("span", null, swatch("band " + name), "behind all: " + words)),
      h("span", null, `Ranges are made of intervals of ${TIME.step / 1000} s.`),
    ];
  }
  patterns() {
    const hatch = (id, turn) => svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` }, svg("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: id }));
    return svg("defs", null, hatch("hatch-down", 45), hatch("hatch-minisr", -45), hatch("hatch-offline", 90));
  }
  // Behind every chart: somebody was down, a partition was under min.insync.replicas, or without leader.
  bands() {
    const group = svg("g", { class: "bands" });
    for (const [name, stretches] of bandsOfTimeline()) {
      for (const [start, end] of stretches) {
        const x = this.x(start), right = Math.max(x + 1, this.x(end));
        group.append(svg("rect", { x, y: 18, width: right - x, height: 4000, class: "band " + name }));
      }
    }
    return group;
  }
  axis() {
    const group = svg("g", { class: "axis" });
    const span_ms = TIME.step * TIME.number;
    const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((value) => value * 1000).find((value) => span_ms / value <= this.wide / 84) || span_ms;
    for (let time = Math.ceil(TIME.start / step) * step; time <= TIME.start + span_ms; time += step) {
      const x = this.x(time);
      group.append(svg("line", { x1: x, x2: x, y1: 16, y2: 4000 }), svg("text", { x, y: 11, "text-anchor": x > GUTTER + this.wide - 20 ? "end" : "middle" }, step < 60000 ? clock(time) : clock(time).slice(0, 5)));
    }
    group.append(svg("text", { x: 0, y: 11 }, wall(TIME.start).slice(0, 10) + (ZONE.local ? " local" : " UTC")));
    return group;
  }
  label(y, text, broker) {
    return svg("text", { x: 0, y: y + 14, class: "lanename", "data-mark": broker ? "b:" + brokerName(broker.broker_id, broker.cluster_id) : null }, text);
  }
  life(broker, y) {
    const group = svg("g", { class: "lane" }, this.label(y, "broker " + brokerName(broker.broker_id, broker.cluster_id), broker));
    const same = (row) => row.broker_id === broker.broker_id && row.cluster_id === broker.cluster_id;
    const order = (life) => ["up", "silent"].indexOf(life.state) + 1 || 3;
    for (const life of CLUSTER.lives.filter(same).sort((one, other) => order(one) - order(other))) {
      const x = this.at(life.start, this.at(broker.first_time, GUTTER)), end = this.at(life.end, life.state === "down" || life.state === "silent" ? GUTTER + this.wide : this.at(broker.last_time, GUTTER + this.wide));
      if (end > x) group.append(svg("rect", { x, y: y + 5, width: Math.max(1, end - x), height: LANE - 10, class: "life " + life.state }, svg("title", null, `${life.state} ${life.start || "from the first line"} to ${life.end || "the last line"}`)));
    }
    const last = new Map();
    for (const event of CLUSTER.events.filter((one) => same(one) && inRange(WHOLE, one.time))) {
      const [glyph, words] = own(GLYPHS, event.kind) || ["\u00b7", event.kind];
      const x = this.at(event.time, GUTTER), key = event.kind;
      if (last.has(key) && x - last.get(key) < 3) continue;
      last.set(key, x);
      group.append(svg("text", { x, y: y + 14.5, "text-anchor": "middle", class: "glyph " + event.kind }, glyph, svg("title", null, `${when(event.time)} broker ${brokerName(event.broker_id)} ${seen(told(inWords(event.detail), event.time))}`)));
    }
    const led = CLUSTER.leaders.find(same);
    if (led && led.steps.length) group.append(svg("text", { x: GUTTER - 8, y: y + 14, class: "led", "text-anchor": "end" }, "leads " + led.steps[led.steps.length - 1][1]));
    return group;
  }
  tellBroker(broker, interval) {
    const until = TIME.start + (interval + 1) * TIME.step, led = CLUSTER.leaders.find((row) => row.broker_id === broker.broker_id && row.cluster_id === broker.cluster_id);
    const leads = led ? led.steps.filter((step) => Date.parse(step[0]) < until).pop() : null;
    const happened = CLUSTER.events.filter((event) => event.broker_id === broker.broker_id && event.cluster_id === broker.cluster_id && Date.parse(event.time) >= until - TIME.step && Date.parse(event.time) < until);
    return `broker ${brokerName(broker.broker_id, broker.cluster_id)}` + (leads ? `, leads ${plural(leads[1], "partition")}` : "") + (happened.length ? ": " + happened.slice(0, 4).map((event) => when(event.time) + " " + event.detail).join("; ") : "");
  }
  windows(state, name, windows, y) {
    const group = svg("g", { class: "lane" }, this.label(y, name));
    const numbers = affected(windows), most = numbers.reduce((highest, number) => Math.max(highest, number), 1);
    numbers.forEach((number, interval) => {
      if (!number) return;
      const height = 3 + (number / most) * (LANE - 8), x = this.x(TIME.start + interval * TIME.step);
      group.append(svg("rect", { x, y: y + LANE - 2 - height, width: Math.max(1, this.wide / TIME.number), height, class: "window " + state }));
    });
    this.rows.push({ y, height: LANE, tell: (interval) => `${plural(numbers[interval], "partition")} ${name}` });
    return group;
  }
  findings(y) {
    const group = svg("g", { class: "lane" }, this.label(y, "findings"));
    for (const [severity, finding] of findingsInTime()) {
      group.append(svg("text", { x: this.at(finding.time, GUTTER), y: y + 14, "text-anchor": "middle", class: "glyph finding-" + severity }, FOUND.find(([name]) => name === severity)[1], svg("title", null, `${when(finding.time)} ${seen(finding.rule_id)}: ${seen(finding.message).slice(0, 300)}`)));
    }
    this.rows.push({ y, height: LANE, tell: (interval) => {
      const from = TIME.start + interval * TIME.step, those = findingsInTime().filter(([, finding]) => Date.parse(finding.time) >= from && Date.parse(finding.time) < from + TIME.step);
      return those.length ? those.slice(0, 3).map(([, finding]) => finding.rule_id).join(", ") : "no finding";
    } });
    return group;
  }
  volume(y) {
    const cells = this.per("all").get(0) || [], most = cells.reduce((highest, figures) => Math.max(highest, figures.operations), 1);
    const group = svg("g", { class: "lane" }, this.label(y, KINDS[this.state.kind] + " / " + TIME.step / 1000 + " s"), svg("text", { x: GUTTER - 8, y: y + 28, class: "led", "text-anchor": "end" }, "up to " + count(most)));
    cells.forEach((figures, interval) => {
      const height = (figures.operations / most) * 38, failed = (figures.with_error / most) * 38, x = this.x(TIME.start + interval * TIME.step), width = Math.max(0.6, this.wide / TIME.number - 0.4);
      group.append(svg("rect", { x, y: y + 40 - height, width, height, class: "bar" }));
      if (failed) group.append(svg("rect", { x, y: y + 40 - Math.max(1.5, failed), width, height: Math.max(1.5, failed), class: "bar failed" }));
    });
    this.rows.push({ y, height: 42, tell: (interval) => cells[interval] ? `${count(cells[interval].operations)} ${KINDS[this.state.kind]}, ${count(cells[interval].with_error)} answered with an error, p99 of arrival to answer ${ms(cells[interval].all.quantile(0.99))} ms` : "none" });
    return group;
  }
  strip(side, y, parts) {
    const found = this.per(side);
    const places = [...found.keys()].sort((one, other) => one - other);
    const values = places.map((place) => Array.from({ length: TIME.number }, (_, interval) => this.value(found.get(place)[interval])));
    places.forEach((place, row) => {
      const top = y + row * (STRIP + 2), name = side === "replica" && NODES[place].broker_id === -1 ? "unknown" : (side === "replica" ? "for broker " : "led by broker ") + nodeName(place);
      const group = svg("g", { class: "strip" }, svg("text", { x: 0, y: top + 12, class: "lanename", "data-mark": "b:" + nodeName(place) }, name));
      values[row].forEach((value, interval) => {
        if (value !== null) group.append(svg("rect", { x: this.x(TIME.start + interval * TIME.step), y: top, width: this.wide / TIME.number + 0.3, height: STRIP, class: "cell " + this.scale.of(value) }));
      });
      parts.push(group);
      this.rows.push({ y: top, height: STRIP, tell: (interval) => { const figures = found.get(place)[interval]; return figures ? `${name}: ${count(figures.operations)} operations, wait p50 ${ms(figures.waits.quantile(0.5))}, p99 ${ms(figures.waits.quantile(0.99))} ms, ${count(figures.slow_all)} slow, ${count(figures.with_error)} with an error` : `${name}: none`; } });
    });
    return places.length * (STRIP + 2);
  }
  // --- choosing a range
  spot(event) { const box = this.picture.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }
  press(event) {
    const [x] = this.spot(event);
    if (event.button || x < GUTTER) return;
    this.from = this.interval(x);
    this.kindOfDrag = event.shiftKey || this.state.drag === "base" ? "base" : "range";
    this.picture.setPointerCapture(event.pointerId);
    event.preventDefault();
  }
  move(event) {
    const [x, y] = this.spot(event);
    if (x < GUTTER - 4) return;
    const interval = this.interval(x), row = this.rows.find((one) => y >= one.y && y < one.y + one.height + 3);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    put(this.readout, h("b", null, clock(TIME.start + interval * TIME.step)), " ", row ? row.tell(interval) : "");
    if (this.from !== undefined) this.preview = [Math.min(this.from, interval), Math.max(this.from, interval) + 1], this.show();
  }
  release(event) {
    if (this.from === undefined) return;
    const interval = this.interval(this.spot(event)[0]);
    const range = [Math.min(this.from, interval), Math.max(this.from, interval) + 1];
    this.from = this.preview = undefined;
    this.changed(this.kindOfDrag, range);
  }
  show() {
    const marks = [];
    const mark = (range, name) => {
      const [start, end] = rangeTimes(range), x = this.x(start), right = this.x(end);
      marks.push(svg("rect", { x, y: 16, width: right - x, height: this.height - 16, class: "chosen " + name }));
    };
    const range = this.preview && this.kindOfDrag === "range" ? this.preview : this.state.range, base = this.preview && this.kindOfDrag === "base" ? this.preview : this.state.base;
    if (!sameRange(range, WHOLE)) {
      const [start, end] = rangeTimes(range);
      marks.push(svg("rect", { x: GUTTER, y: 16, width: Math.max(0, this.x(start) - GUTTER), height: this.height, class: "outside" }), svg("rect", { x: this.x(end), y: 16, width: Math.max(0, GUTTER + this.wide - this.x(end)), height: this.height, class: "outside" }));
      mark(range, "range");
    }
    if (base) mark(base, "base");
    put(this.overlay, marks);
  }
}
// Blue up to what counts as slow, orange beyond it: told apart by everybody, and darker is always more. Steps: class and lowest value.
function heatScale(values, { limit }) {
  const there = values.filter((value) => value !== null), most = there.reduce((highest, value) => Math.max(highest, value), 0.01), reach = Math.log(Math.max(2, most / (limit || 1)));
  const steps = [0, 1, 2, 3].map((at) => ["below-" + at, ((limit || most) * at) / 4]).filter(([name]) => limit !== 0 || name === "below-0");
  if (limit !== null && most > limit) steps.push(...[0, 1, 2, 3].map((at) => ["above-" + at, limit ? limit * Math.exp((reach * at) / 4) : Math.expm1((Math.log1p(most) * at) / 4)]));
  return { most, steps: there.length ? steps : [], of: (value) => steps.reduce((name, [next, from]) => (value > from ? next : name), "below-0") };
}
function affected(windows) {
  const numbers = new Array(TIME.number).fill(0);
  for (const window of windows) {
    const from = Math.max(0, Math.floor((Date.parse(window.start) - TIME.start) / TIME.step)), to = window.end ? Math.min(TIME.number - 1, Math.floor((Date.parse(window.end) - TIME.start) / TIME.step)) : TIME.number - 1;
    for (let interval = from; interval <= to; interval++) numbers[interval]++;
  }
  return numbers;
}
function joined(stretches) {
  const found = [];
  for (const [start, end] of stretches.sort((one, other) => one[0] - other[0])) {
    const last = found[found.length - 1];
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else found.push([start, end]);
  }
  return found;
}
function bandsOfTimeline() {
  const end = TIME.start + TIME.step * TIME.number;
  const clip = (start, stop) => [Math.max(TIME.start, start ? Date.parse(start) : TIME.start), Math.min(end, stop ? Date.parse(stop) : end)];
  const of = (rows) => joined(rows.map((row) => clip(row.start, row.end)).filter(([start, stop]) => stop > start));
  return [
    ["down", of(CLUSTER.lives.filter((life) => life.state === "down")), "a broker down"],
    ["minisr", of(CLUSTER.unavailable.filter((window) => window.state === "under_min_isr")), "under min.insync.replicas"],
    ["offline", of(CLUSTER.unavailable.filter((window) => window.state === "offline")), "without leader"],
  ];
}
function brokersOfTimeline() {
  return DATA.brokers.filter((broker) => broker.broker_id !== -1).slice(0, 60);
}
let timed = null;
function findingsInTime() {
  if (!timed) timed = [["violation", DATA.violations], ["open", DATA.open_cases], ["observation", DATA.observations]].flatMap(([severity, findings]) => findings.filter((finding) => finding.time).map((finding) => [severity, finding]));
  return timed;
}
const KINDS = { produce: "produces", coordinator: "coordinators' requests" };
