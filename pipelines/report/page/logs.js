// What the report rests on: brokers, settings, files, versions.
"use strict";
function command(text) {
  const button = h("button", { type: "button", class: "copy", onclick: () => copy(text, button) }, "copy");
  return h("span", { class: "command" }, h("code", null, text), " ", button);
}
// Commands that answer what one asks next: a question and a command each, without those whose words cannot be pasted.
function asks(questions) {
  const there = questions.filter((one) => one && one[1] !== null);
  return there.length ? h("ul", { class: "next" }, there.map(([question, text]) => h("li", null, question, " ", command(text)))) : null;
}
function asked(verb, subject, options) {
  const name = word(subject);
  return name === null ? null : `highwater ${verb}${options || ""} ${name.startsWith("-") ? "-- " : ""}${name}`;
}
const oneCluster = new Set(DATA.brokers.map((broker) => broker.cluster_id)).size < 2;
const ofCluster = (cluster_id) => (oneCluster || word(cluster_id) === null ? "" : " --cluster " + word(cluster_id));
const ofTimes = (range) => rangeTimes(range).map((time) => iso(time).slice(0, 19) + "Z");
function ofRange(range) {
  if (!TIME || sameRange(range, WHOLE)) return "";
  const [from, until] = ofTimes(range);
  return ` --from ${from} --until ${until}`;
}
const ofPartition = (name, cluster_id, range) => [["The partition's life, with lines:", asked("trace partition", name, ofCluster(cluster_id) + ofRange(range))], ["What each replica holds, and what is lost if it is elected:", asked("survivors", name, ofCluster(cluster_id))]];
function copy(text, button) {
  const done = (word) => { const before = button.textContent; button.textContent = word; setTimeout(() => { button.textContent = before; }, 1200); };
  const select = () => { const area = h("textarea", { class: "offscreen", readonly: true }); area.value = text; document.body.append(area); area.select(); const worked = document.execCommand("copy"); area.remove(); done(worked ? "copied" : "select it by hand"); };
  if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(() => done("copied"), select);
  else select();
}
function drawLogs(place) {
  const coverage = DATA.coverage, cost = DETAIL.cost, origin = DATA.provenance;
  const worth = (value) => (value === null ? "-" : value);
  put(place, h("h3", null, "Brokers"), table([
    column("broker", "broker_id", brokerOf), column("cluster", "cluster_id"), column("Kafka", "kafka_version", worth), column("mode", "mode", worth), column("tier", "tier"), number("files", "files"), number("lines", "lines"), column("first line", "first_time", worth), column("last line", "last_time", worth),
  ], { rows: DATA.brokers, wide: true }),
  h("h3", { id: "clocks" }, "Clocks"), table([
    column("broker", "broker_a", brokerOf), column("and", "broker_b", brokerOf), number("ahead by more than, ms", "lowest_ms", ms, { hint: "The second clock, of the first one; negative: behind" }), number("by less than, ms", "highest_ms", ms), column("at", "time", when),
    number("changed by at least, ms", "changed_ms", ms), column("between", "changed_since", (value, row) => (value === null ? "-" : when(value) + " and " + when(row.changed_until))), number("if by drift, ppm", "drift_ppm", (value) => (value === null ? "-" : ms(value))), number("windows", "windows", count), number("lines that tell", "links", count),
  ], { rows: CLUSTER.clocks, wide: true, empty: "No line of one broker surely came before one of another: nothing tells how far the clocks were apart.", note: [CLUSTER.clocks.length ? "How far the second broker's clock was ahead of the first one's, in the window that tells most; times are those of the first. All times of the page are those of each broker's own clock: an order of two brokers' events closer than these bounds is none." : "", CLUSTER.left_out.clocks ? ` ${plural(CLUSTER.left_out.clocks, "pair")} left out.` : ""].join("") || null }),
  CLUSTER.clocks.length ? asks([["Window by window:", 'highwater sql "select * from gold_clock_bounds order by broker_a, broker_b, window_start"']]) : null,
  h("h3", null, "Settings that differ between brokers"), table([
    column("Setting", "key", (value) => h("code", null, value)), column("values", (row) => row.values.length, (value, row) => row.values.map(([text, brokers]) => h("div", null, h("code", null, text === null ? "null" : text), " ", chips(brokers))), { long: true }), column("meant to differ", (row) => (row.by_nature ? "yes" : "")),
  ], { rows: CLUSTER.settings, empty: "None of the settings that brokers logged at their last start differ.", note: "As logged at each broker's last start." + (CLUSTER.left_out.settings ? ` ${plural(CLUSTER.left_out.settings, "setting")} left out.` : "") }),
  h("h3", null, "Settings that matter for replication"), table([column("Setting", "key", (value) => h("code", null, value)), ...DATA.brokers.filter((broker) => Object.keys(broker.config).length).slice(0, 12).map((broker) => column("broker " + brokerName(broker.broker_id, broker.cluster_id), (row) => row.values.get(broker), (value) => (value === null || value === undefined ? "-" : value), { long: true }))],
    { rows: [...new Set(DATA.brokers.flatMap((broker) => Object.keys(broker.config)))].sort().map((key) => ({ key, values: new Map(DATA.brokers.map((broker) => [broker, own(broker.config, key)])) })), limit: 12, wide: true }),
  coverage.top_unparsed.length ? [h("h3", null, "Records that were not understood"), table([number("records", "count"), column("logger", "logger", worth, { long: true }), column("text, numbers and names masked", "template", (value) => value, { long: true })], { rows: coverage.top_unparsed })] : null,
  h("h3", null, "How to read it"), h("ul", null, DATA.notes.map((note) => h("li", null, note))),
  h("h3", null, "What the run took"), h("p", null, `${count(cost.lines)} lines in files of ${count(cost.bytes)} bytes as stored`, cost.seconds === null ? "." : `; ${cost.seconds} s from the start of the command to this report.`),
  h("h3", null, "Where it comes from"), h("dl", { class: "pairs" }, [["Run", origin.run_id], ["highwater", origin.code_version], ["Configuration, hash", origin.config_hash], ["Grammars and rules, hash", origin.rules_fingerprint]].map(([name, value]) => [h("dt", null, name), h("dd", null, h("code", null, value))])),
  folded(`Input files (${count(origin.inputs.length + DATA.page.inputs_left_out)})`, table([column("file", "file", (value) => value, { long: true }), column("SHA-256 as stored", "sha256", (value) => h("code", null, value), { long: true })], { rows: origin.inputs, limit: 100, note: DATA.page.inputs_left_out ? `${plural(DATA.page.inputs_left_out, "more file")}: report.json lists them.` : null })),
  folded("Versions of the tables", table([column("table", (row) => row[0]), number("Delta version", (row) => row[1])], { rows: Object.entries(origin.delta_versions), limit: 100 })));
}
