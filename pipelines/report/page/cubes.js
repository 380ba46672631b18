// The figures of a range, added up from aggregates per interval.
// Counts and sums are exact. Quantiles come from histograms that add up: within `accuracy` of the exact ones.
"use strict";
const DATA = JSON.parse(byId("data").textContent);
const DETAIL = DATA.detail, CLUSTER = DETAIL.cluster, CUBES = DETAIL.cubes;
// Columns of names come as numbers into a list of the names.
for (const cells of Object.values(CUBES || {})) for (const [name, column] of Object.entries(cells && !Array.isArray(cells) && typeof cells === "object" ? cells : {})) if (column && column.names) cells[name] = column.at.map((place) => column.names[place]);
const SLOW_MS = DATA.slow_ms;
const CLASSES = ["explained", "jitter", "late", "unobservable", "contradicted"];
const SEVERAL_CLUSTERS = new Set(DATA.brokers.map((broker) => broker.cluster_id)).size > 1;

const TIME = (() => {
  if (CUBES) return { start: CUBES.start_s * 1000, step: CUBES.interval_s * 1000, number: CUBES.intervals };
  // Without requests: from the first line to the last one, in at most 600 intervals.
  const times = DATA.brokers.flatMap((broker) => [broker.first_time, broker.last_time]).filter(Boolean).map(Date.parse);
  if (!times.length) return null;
  const first = Math.min(...times), last = Math.max(...times), step = [1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400].map((value) => value * 1000).find((value) => (last - first) / value < 600) || 604800000;
  const start = Math.floor(first / step) * step;
  return { start, step, number: Math.floor((last - start) / step) + 1 };
})();
const NODES = CUBES ? CUBES.nodes : [];
function brokerName(broker_id, cluster_id) {
  const name = broker_id === -1 || broker_id === null ? "?" : String(broker_id);
  return SEVERAL_CLUSTERS && cluster_id ? cluster_id.slice(0, 6) + "/" + name : name;
}
const nodeName = (place) => brokerName(NODES[place].broker_id, NODES[place].cluster_id);

// --- histograms
class Histogram {
  constructor() { this.counts = []; this.number = 0; }
  // Counts from bucket 0 on; a negative number passes over so many empty ones.
  add(packed) {
    let bucket = 0;
    for (const number of packed) {
      if (number < 0) { bucket -= number; continue; }
      this.counts[bucket] = (this.counts[bucket] || 0) + number;
      this.number += number;
      bucket++;
    }
    return this;
  }
  merge(other, sign = 1) {
    other.counts.forEach((number, bucket) => { this.counts[bucket] = (this.counts[bucket] || 0) + sign * number; });
    this.number += sign * other.number;
    return this;
  }
  // Linear between the two nearest ranks, as the report's exact quantiles are.
  quantile(part) {
    if (!this.number) return null;
    const place = part * (this.number - 1), low = Math.floor(place);
    const [first, second] = this.ranks(low, Math.min(low + 1, this.number - 1));
    return first + (second - first) * (place - low);
  }
  ranks(low, high) {
    let passed = 0, first = null;
    for (let bucket = 0; bucket < this.counts.length; bucket++) {
      passed += this.counts[bucket] || 0;
      if (first === null && passed > low) first = middle(bucket);
      if (passed > high) return [first, middle(bucket)];
    }
    return [first, first];
  }
}
function middle(bucket) {
  return bucket === 0 ? 0.005 : (2 * 0.01 * Math.pow(CUBES.growth, bucket)) / (CUBES.growth + 1);
}

// --- ranges
// A range is [first interval, interval after the last one].
const WHOLE = TIME ? [0, TIME.number] : [0, 0];
const sameRange = (one, other) => one === other || (one && other && one[0] === other[0] && one[1] === other[1]);
const rangeTimes = (range) => [TIME.start + range[0] * TIME.step, TIME.start + range[1] * TIME.step];
const rangeSeconds = (range) => ((range[1] - range[0]) * TIME.step) / 1000;
function inRange(range, text, until) {
  if (!TIME || !text) return true;
  const [from, to] = rangeTimes(range);
  const start = Date.parse(text), end = until === undefined ? start : until === null ? Infinity : Date.parse(until);
  return end >= from && start < to;
}
function rowsIn(cells, range) {
  const found = [];
  for (let at = 0; at < cells.interval.length; at++) {
    if (cells.interval[at] >= range[0] && cells.interval[at] < range[1]) found.push(at);
  }
  return found;
}

// --- operations
function emptyFigures() {
  const zero = { operations: 0, succeeded: 0, with_error: 0, slow: 0, wait_us: 0, slow_wait_us: 0, within_1: 0, within_5: 0, within_20: 0, split: 0 };
  for (const name of CLASSES) zero[name] = 0;
  return { ...zero, parts_us: [0, 0, 0, 0, 0, 0], wait: new Histogram(), total: new Histogram(), without: new Histogram(), all: new Histogram(), waits: new Histogram(), slow_all: 0, slow_us_all: 0 };
}
const COUNTED = ["operations", "succeeded", "with_error", "slow", "wait_us", "slow_wait_us", "slow_all", "slow_us_all", "within_1", "within_5", "within_20", "split", ...CLASSES];
// Charts look at the waits of all answers, tables at those without error.
function addCell(figures, at, charted) {
  const O = CUBES.operations;
  figures.operations += O.operations[at];
  for (const name of CLASSES) figures[name] += O[name][at];
  if (O.succeeded[at]) {
    figures.succeeded += O.operations[at];
    figures.slow += O.slow[at];
    figures.wait_us += O.wait_us[at];
    figures.slow_wait_us += O.slow_wait_us[at];
    if (!charted) figures.wait.add(O.wait[at]);
  } else figures.with_error += O.operations[at];
  if (charted) figures.waits.add(O.wait[at]);
  figures.slow_all += O.slow[at];
  figures.slow_us_all += O.slow_wait_us[at];
  for (const name of ["within_1", "within_5", "within_20"]) figures[name] += O[name][at];
  figures.split += O.split[at];
  O.parts_us[at].forEach((part, place) => { figures.parts_us[place] += part; });
}
function addFigures(figures, other) {
  for (const name of COUNTED) figures[name] += other[name];
  other.parts_us.forEach((part, place) => { figures.parts_us[place] += part; });
  figures.wait.merge(other.wait);
}
// Arrival to completion: told by replica, whoever led.
function addTotals(range, kind, of) {
  const T = CUBES.totals;
  for (const at of rowsIn(T, range)) {
    if (T.kind[at] !== kind) continue;
    for (const figures of of(T, at)) {
      figures.all.add(T.total[at]);
      if (!T.succeeded[at]) continue;
      figures.total.add(T.total[at]);
      figures.without.add(T.without[at]);
    }
  }
}
// Of one kind: all together, by replica that was waited for, by leader and replica.
const REMEMBERED = new Map();
function operationsOf(range, kind) {
  const key = kind + range.join("-");
  if (!REMEMBERED.has(key)) {
    if (REMEMBERED.size > 40) REMEMBERED.clear();
    REMEMBERED.set(key, addedUp(range, kind));
  }
  return REMEMBERED.get(key);
}
function addedUp(range, kind) {
  const whole = emptyFigures(), replicas = new Map(), pairs = new Map(), failed = emptyFigures();
  if (!CUBES) return { whole, replicas, pairs };
  const O = CUBES.operations;
  const of = (map, key) => { if (!map.has(key)) map.set(key, emptyFigures()); return map.get(key); };
  for (const at of rowsIn(O, range)) {
    if (O.kind[at] === kind) addCell(O.succeeded[at] ? of(pairs, O.leader[at] + "," + O.replica[at]) : failed, at, false);
  }
  addFigures(whole, failed);
  for (const [pair, figures] of pairs) {
    addFigures(whole, figures);
    addFigures(of(replicas, Number(pair.split(",")[1])), figures);
  }
  addTotals(range, kind, (T, at) => [whole, replicas.get(T.replica[at])].filter(Boolean));
  return { whole, replicas, pairs };
}
// Of all of it the report has exact quantiles.
const EXACT_BLAME = { produce: DATA.blame, coordinator: DATA.blame_coordinator };
function exactly(row, kind, range) {
  const node = NODES[row.place], exact = sameRange(range, WHOLE) && EXACT_BLAME[kind].find((one) => one.broker_id === node.broker_id && one.cluster_id === node.cluster_id);
  return exact ? { ...row, wait_p99: exact.wait_ms_p99, p99_without: exact.p99_ms_without } : row;
}
function p99Of(range, kind, figures) {
  return sameRange(range, WHOLE) && EXACT_BLAME[kind].length ? EXACT_BLAME[kind][0].p99_ms_actual : figures.total.quantile(0.99);
}
function blameRows(range, kind) {
  const { whole, replicas } = operationsOf(range, kind);
  return [...replicas].map(([place, figures]) => {
    const nobody = NODES[place].broker_id === -1;
    const without = new Histogram().merge(whole.total).merge(figures.total, -1).merge(figures.without);
    return exactly({
      key: String(place), place, operations: figures.operations, slow: figures.slow,
      share: whole.slow_wait_us > 0 ? figures.slow_wait_us / whole.slow_wait_us : whole.wait_us > 0 ? figures.wait_us / whole.wait_us : 0,
      waited_ms: figures.wait_us / 1000, slow_wait_ms: figures.slow_wait_us / 1000, wait_p99: figures.wait.quantile(0.99),
            p50_without: nobody ? null : without.quantile(0.5), p99_without: nobody ? null : without.quantile(0.99), p999_without: nobody ? null : without.quantile(0.999),
    }, kind, range);
  }).sort((one, other) => (NODES[one.place].broker_id === -1) - (NODES[other.place].broker_id === -1) || other.slow_wait_ms - one.slow_wait_ms || other.waited_ms - one.waited_ms);
}
// Per interval, for charts: a map from row (leader or replica) to an array of figures.
function perInterval(kind, side) {
  const O = CUBES ? CUBES.operations : { interval: [] }, found = new Map();
  for (let at = 0; at < O.interval.length; at++) {
    if (O.kind[at] !== kind) continue;
    const row = side === "all" ? 0 : O[side][at];
    if (!found.has(row)) found.set(row, []);
    const cells = found.get(row);
    if (!cells[O.interval[at]]) cells[O.interval[at]] = emptyFigures();
    addCell(cells[O.interval[at]], at, true);
  }
  if (side === "all" && found.has(0)) addTotals(WHOLE, kind, (T, at) => [found.get(0)[T.interval[at]]].filter(Boolean));
  return found;
}

// --- requests, partitions, clients
function requestRows(range) {
  if (!CUBES) return [];
  const R = CUBES.requests, found = new Map();
  for (const at of rowsIn(R, range)) {
    const kind = R.kind[at];
    if (!found.has(kind)) found.set(kind, { key: kind, kind, requests: 0, within_1: 0, total_us: 0, phases_us: R.phases_us[at].map(() => 0), total: new Histogram() });
    const row = found.get(kind);
    row.requests += R.requests[at];
    row.within_1 += R.within_1[at];
    row.total_us += R.total_us[at];
    R.phases_us[at].forEach((part, place) => { row.phases_us[place] += part; });
    row.total.add(R.total[at]);
  }
  const rows = [...found.values()].sort((one, other) => other.requests - one.requests);
  for (const row of rows) {
    const exact = sameRange(range, WHOLE) && own(DATA.latency, row.kind);
    row.quantiles = exact && exact.total_ms ? [exact.total_ms.p50, exact.total_ms.p95, exact.total_ms.p99, exact.total_ms.p999] : [0.5, 0.95, 0.99, 0.999].map((part) => row.total.quantile(part));
  }
  return rows;
}
function partitionRows(range) {
  if (!CUBES) return [];
  const S = CUBES.slow, found = new Map();
  for (const at of rowsIn(S, range)) {
    const name = S.topic[at] === null ? "?" : S.topic[at] + "-" + S.partition[at];
    if (!found.has(name)) found.set(name, { key: name, name, topic: S.topic[at], operations: 0, errors: 0, slow_ms: 0, longest: 0, leaders: new Map(), replicas: new Map() });
    const row = found.get(name), slow = S.slow_wait_us[at] / 1000;
    row.operations += S.operations[at];
    if (!S.succeeded[at]) row.errors += S.operations[at];
    row.slow_ms += slow;
    row.longest = Math.max(row.longest, S.wait_us_max[at] / 1000);
    row.leaders.set(S.leader[at], (row.leaders.get(S.leader[at]) || 0) + slow);
    row.replicas.set(S.replica[at], (row.replicas.get(S.replica[at]) || 0) + slow);
  }
  return [...found.values()].sort((one, other) => other.slow_ms - one.slow_ms);
}
function clientRows(range) {
  if (!CUBES) return [];
  const L = CUBES.clients, S = CUBES.slow, E = CUBES.errors, found = new Map();
  const of = (client) => {
    const name = client === null ? "?" : client;
    if (!found.has(name)) found.set(name, { key: name, client: name, requests: 0, total_us: 0, longest: 0, apis: new Map(), slow: 0, slow_ms: 0, errors: new Map(), failed: 0 });
    return found.get(name);
  };
  for (const at of rowsIn(L, range)) {
    const row = of(L.client[at]);
    row.requests += L.requests[at];
    row.total_us += L.total_us[at];
    row.longest = Math.max(row.longest, L.total_us_max[at] / 1000);
    row.apis.set(L.api[at], (row.apis.get(L.api[at]) || 0) + L.requests[at]);
  }
  for (const at of rowsIn(S, range)) {
    const row = of(S.client[at]);
    row.slow += S.operations[at];
    row.slow_ms += S.slow_wait_us[at] / 1000;
  }
  for (const at of rowsIn(E, range)) {
    const row = of(E.client[at]);
    row.failed += E.operations[at];
    row.errors.set(E.code[at], (row.errors.get(E.code[at]) || 0) + E.operations[at]);
  }
  return [...found.values()].sort((one, other) => other.slow_ms - one.slow_ms || other.requests - one.requests);
}
// Waiting that a broker caused, and all waiting, between two times.
function paidBetween(start, end, broker_id, cluster_id) {
  const from = Math.max(0, Math.floor((Date.parse(start) - TIME.start) / TIME.step));
  const to = end ? Math.floor((Date.parse(end) - TIME.start) / TIME.step) + 1 : TIME.number;
  const { whole, replicas } = operationsOf([from, to], "produce");
  let caused = 0;
  for (const [place, figures] of replicas) {
    if (NODES[place].broker_id === broker_id && NODES[place].cluster_id === cluster_id) caused += figures.slow_wait_us;
  }
  return { own_ms: caused / 1000, all_ms: whole.slow_wait_us / 1000, p99: whole.total.quantile(0.99), errors: whole.with_error };
}
