// Who made whom wait: the sections whose figures are those of the range.
"use strict";
const PARTS = [
  ["wait_for_fetch", "No fetch of the replica was there: until it came"],
  ["carry", "The fetch that carried the records out"],
  ["follower", "The follower's append and way back"],
  ["closing_fetch", "Its next fetch in the leader's queue, and handled"],
  ["completion", "From satisfied to answered"],
  ["isr_change", "Instead of these: until the ISR changed"],
];
const PHASES = ["request queue", "local", "remote", "throttle", "response queue", "send", "unaccounted"];
const REQUESTS = { produce_acks_all: "Produce, acks=all", produce_acks_1: "Produce, other acks", fetch_follower: "Fetch of followers", fetch_consumer: "Fetch of consumers", other: "all other requests" };
const about = () => (CUBES ? `Percentiles of a selection are approximate (\u00b1${(CUBES.accuracy * 100).toFixed(0)}%).` : "");

function drawOperations(place, state) {
  const rows = (range) => ["produce", "coordinator"].map((kind) => { const { whole } = operationsOf(range, kind); return { key: kind, kind, ...whole, p99: p99Of(range, kind, whole) }; }).filter((row) => row.operations);
  const near = (name) => number("within " + name.slice(7) + " ms", (row) => (row.succeeded ? row[name] / row.succeeded : null), share, { hint: "Answered so near to the predicted interval, of those answered without error" });
  put(place, table([
    column("Operations", (row) => KINDS[row.kind]), counted("observed", "operations"), counted("with an error", "with_error"),
    ...CLASSES.map((name) => counted(name, (row) => row[name])), near("within_1"), near("within_5"), near("within_20"),
    counted("slow", "slow", { hint: "Waited longer than " + SLOW_MS + " ms, of those answered without error" }),
    duration("p50 ms", (row) => row.total.quantile(0.5)), duration("p99 ms", "p99", { hint: "From arrival to completion, of those answered without error" }), duration("p99.9 ms", (row) => row.total.quantile(0.999)),
  ], { rows: rows(state.range), base: state.base && rows(state.base), times: state.times, main: "p99 ms", wide: true, note: about() }));
}
function drawBlame(place, state) {
  const rows = (range) => blameRows(range, state.kind);
  const less = (name, without) => duration(name + " without it, ms", (row) => row[without], { hint: "From arrival to completion, of all these operations, had this broker not been waited for" });
  const { whole } = operationsOf(state.range, state.kind);
  put(place, table([
    column("broker", (row) => nodeName(row.place), (value, row) => nodeChip(row.place)),
    counted("operations", "operations", { hint: "Answered without error, that it was the last to be waited for" }), counted("slow", "slow"),
    number("share", "share", share, { hint: "Of all waiting beyond " + SLOW_MS + " ms; of all waiting where none was slow" }),
    number("waited, s", "waited_ms", (value) => (value === null ? "-" : (value / 1000).toFixed(1)), { rate: true }), duration("wait p99, ms", "wait_p99"),
    less("p50", "p50_without"), less("p99", "p99_without"), less("p99.9", "p999_without"),
  ], { rows: rows(state.range), base: state.base && rows(state.base), times: state.times, main: "share", wide: true, note: `As it was: p50 ${ms(whole.total.quantile(0.5))}, p99 ${ms(p99Of(state.range, state.kind, whole))}, p99.9 ${ms(whole.total.quantile(0.999))} ms from arrival to completion of all these operations; "without it": estimated latency if this broker had not been needed. ?: unknown. ` + about() }),
  CUBES && state.kind === "produce" ? asks([["By leader, without a broker that also leads, and with another min.insync.replicas:", "highwater whatif" + ofRange(state.range)]]) : null);
}
function drawMatrix(place, state) {
  const pairsOf = (range) => operationsOf(range, state.kind).pairs, those = [pairsOf(state.range), ...(state.base ? [pairsOf(state.base)] : [])];
  const places = (side) => [...new Set(those.flatMap((pairs) => [...pairs.keys()]).map((key) => Number(key.split(",")[side])))].sort((one, other) => one - other);
  const rows = (pairs) => places(0).map((leader) => ({ key: String(leader), leader, pairs }));
  const cell = (replica) => number("waits for " + nodeName(replica), (row) => { const figures = row.pairs.get(row.leader + "," + replica); return figures ? figures.slow_wait_us / 1000 : null; }, (value, row) => {
    const figures = value === null ? null : row.pairs.get(row.leader + "," + replica);
    return figures ? [ms(value), h("div", { class: "was" }, `${count(figures.operations)} op., p99 ${ms(figures.wait.quantile(0.99))}`)] : ms(value);
  });
  put(place, table([column("leader", "leader", (value) => nodeChip(value)), ...places(1).map(cell)], { rows: rows(those[0]), base: those[1] && rows(those[1]), times: state.times, empty: "No such operations in this range.",
    note: `Milliseconds waited beyond ${SLOW_MS} ms per operation; below it operations and the p99 of their wait, ms.` }));
}
function drawParts(place, state) {
  const rows = (range) => { const { whole } = operationsOf(range, state.kind); return whole.split ? PARTS.map(([key, name], at) => ({ key, name, mean: whole.parts_us[at] / whole.split / 1000 })) : []; };
  const exact = DATA.latency.produce_acks_all.phases_ms;
  put(place, table([
    column("Part of the wait", "name"), duration("mean, ms", "mean"),
    ...(state.kind === "produce" ? [duration("p99 of the whole report, ms", (row) => (exact[row.key] ? exact[row.key].p99 : null), { fixed: true, hint: "Not of the range: parts have no histograms per interval" })] : []),
  ], { rows: rows(state.range), base: state.base && rows(state.base), times: state.times, main: "mean, ms", note: `Of ${plural(operationsOf(state.range, state.kind).whole.split, "operation")}, by the cycle of the replica that ended the wait; a part that an operation does not have counts as 0.` }));
}
function drawLatency(place, state) {
  const rows = requestRows;
  put(place, table([
    column("Request", (row) => own(REQUESTS, row.kind) || row.kind.toUpperCase()), counted("requests", "requests"),
    ...["p50", "p95", "p99", "p99.9"].map((name, at) => duration(name, (row) => (row.kind === "other" ? null : row.quantiles[at]))),
    ...PHASES.map((name, at) => duration(name, (row) => (row.kind === "other" ? null : row.phases_us[at] / row.requests / 1000), { hint: "Mean, ms", rare: true })),
  ], { rows: rows(state.range), base: state.base && rows(state.base), times: state.times, main: "p99", wide: true, note: "Milliseconds from arrival to response sent, as the brokers' own figures give them; phases are means. " + about() }));
}
// Of the whole report: readers by where they read, members of share groups, clients that quotas held back.
function drawReaders(place) {
  const worth = (value) => (value === null ? "-" : value);
  const causes = (row) => Object.entries(row.by_cause).map(([cause, number]) => cause + " " + count(number)).join(", ");
  const sums = (names) => names.map((name) => number(name.replace("_", " "), (row) => row[name], count, { rare: true }));
  const part = (title, columns, rows, note) => (rows.length ? [h("h3", null, title), table(columns, { rows, wide: true, note })] : null);
  put(place, part("Readers, of the whole report", [
    column("reader", "reader"), column("reads from", "read_from", worth), number("min.bytes", "min_bytes", worth), column("isolation", "isolation_level", worth), number("fetches", "observed"), number("waited", "parked"),
    number("within 5 ms", (row) => row.within_ms["5"], share, { hint: "Of those that waited" }), ...sums(["jitter", "late", "unobservable"]), column("answered by", "observed", (value, row) => causes(row), { long: true }),
  ], DATA.operations.fetch.groups),
  part("Members of share groups, of the whole report", [
    column("group", "group_id", worth), column("client", "client_id", worth), column("member", "member_id", worth), number("fetches", "fetches"), number("waited", "waited"), number("delivered", "delivered"), number("again", "redelivered"), ...sums(["accepted", "released", "rejected", "renewed", "refused"]),
    number("locks that ran out", "locks_expired"), column("answered by", "fetches", (value, row) => causes(row), { long: true }),
  ], DATA.share_members, "Records that members were given and gave back (KIP-932). Again: they had been delivered before. Refused: their acknowledgement failed. Locks: records that were delivered again as the member's lock on them had run out."),
  part("Throttled by quotas, of the whole report", [
    column("client", "client_id", worth), column("request", "api"), number("requests", "requests"), number("in all, ms", "throttle_ms_total", ms), number("longest, ms", "throttle_ms_max", ms),
  ], DATA.throttled));
}
function drawPartitions(place, state) {
  const rows = (range) => partitionRows(range);
  const worst = (map) => [...map].sort((one, other) => other[1] - one[1]).slice(0, 3).map(([node], at) => [at ? " " : "", nodeChip(node)]);
  const left = CUBES ? CUBES.slow.left_out : { rows: 0, amount: 0 };
  put(place, table([
    column("Partition", "name", (value, row) => placeChip(row.topic === null ? null : row.name)), number("waited beyond " + SLOW_MS + " ms, ms", "slow_ms", ms, { rate: true }),
    counted("slow operations", "operations"), counted("with an error", "errors"), duration("longest, ms", "longest"),
    column("leaders", (row) => row.leaders.size, (value, row) => worst(row.leaders)), column("closing replica", (row) => row.replicas.size, (value, row) => worst(row.replicas)),
  ], { rows: rows(state.range), base: state.base && rows(state.base), times: state.times, main: "waited beyond " + SLOW_MS + " ms, ms", anchor: (row) => anchor("partition", row.name), open: (row) => asks(row.topic === null ? [] : ofPartition(row.name, NODES[[...row.leaders.keys()][0]].cluster_id, state.range)),
    note: "Acks=all operations slower than " + SLOW_MS + " ms, with those answered with an error, by the partition that was last." + (left.rows ? ` Of smaller amounts ${count(left.rows)} rows, ${ms(left.amount / 1000)} ms in all, are left out.` : ""), empty: "No operation of this range waited longer than " + SLOW_MS + " ms." }));
}
const ERRORS = { 1: "OFFSET_OUT_OF_RANGE", 3: "UNKNOWN_TOPIC_OR_PARTITION", 6: "NOT_LEADER_OR_FOLLOWER", 7: "REQUEST_TIMED_OUT", 19: "NOT_ENOUGH_REPLICAS", 20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND", 45: "OUT_OF_ORDER_SEQUENCE_NUMBER", 46: "DUPLICATE_SEQUENCE_NUMBER", 47: "INVALID_PRODUCER_EPOCH", 56: "KAFKA_STORAGE_ERROR", 74: "FENCED_LEADER_EPOCH", 90: "PRODUCER_FENCED" };
function drawClients(place, state) {
  const left = CUBES ? CUBES.clients.left_out : { rows: 0, amount: 0 };
  const most = (map) => [...map].sort((one, other) => other[1] - one[1]);
  put(place, table([
    column("Client id", "client", (value) => value, { long: true }), counted("requests", "requests"), duration("mean, ms", (row) => (row.requests ? row.total_us / row.requests / 1000 : null)), duration("longest, ms", "longest"),
    counted("slow operations", "slow"), number("waited beyond " + SLOW_MS + " ms, ms", "slow_ms", ms, { rate: true }), counted("errors", "failed", { hint: "Of operations that wait for replication" }),
    column("what for", "requests", (value, row) => most(row.apis).slice(0, 4).map(([api, asked]) => api + " " + count(asked)).join(", "), { long: true }),
    column("errors by code", "failed", (value, row) => most(row.errors).map(([code, failed]) => (ERRORS[code] || "error " + code) + " " + count(failed)).join(", "), { long: true }),
  ], { rows: clientRows(state.range), base: state.base && clientRows(state.base), times: state.times, main: "requests", wide: true,
    note: left.rows ? `Of rarer clients ${count(left.rows)} rows with ${count(left.amount)} requests are left out.` : null }));
}
