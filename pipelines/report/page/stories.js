// Findings, requests, events: what can be opened, line by line.
"use strict";
const SHOWN_FINDINGS = 50;
function placeOf(finding) {
  const parts = finding.topic === null ? [] : [finding.topic + (finding.partition === null ? "" : "-" + finding.partition)];
  if (finding.offset_start !== null) {
    const last = finding.offset_end === null ? null : finding.offset_end - 1;
    parts.push(last === null ? "from offset " + count(finding.offset_start) : last <= finding.offset_start ? "offset " + count(finding.offset_start) : `offsets ${count(finding.offset_start)}-${count(last)}`);
  }
  if (finding.leader_epoch !== null) parts.push("leader epoch " + finding.leader_epoch);
  return parts.join(", ");
}
// A line with its place; of evidence also its time and broker: what a file without lines holds has no time.
function lineBlock(line, evidence) {
  const said = evidence ? [line.time ? h("span", { class: "time" }, when(line.time)) : "no time", line.broker_id === null ? "" : [" broker ", brokerChip(line.broker_id)], " "] : [];
  return h("div", { class: "line" }, h("div", { class: "source" }, said, h("span", { class: "path" }, line.file || "line"), line.line_no === null || line.line_no === undefined ? "" : (line.line_no ? ` line ${count(line.line_no)},` : "") + ` byte ${count(line.byte_offset)}`), !line.text ? null : h("pre", null, line.text));
}
function findingBlock(finding, severity, nested) {
  const words = severity === "violation" ? "violation" : severity === "open" ? "undecided" : "observation";
  return h("details", { class: "finding " + (nested ? "nested" : severity), id: nested ? null : anchor("finding", finding.finding_id), open: nested || null },
    h("summary", null, h("span", { class: "tag " + (nested ? "" : severity) }, nested ? "follows" : words), " ", h("b", null, finding.rule_id), " ", placeOf(finding), finding.known_bug ? [", ", h("b", null, finding.known_bug)] : "", finding.time ? h("span", { class: "time" }, " " + when(finding.time)) : "", h("div", { class: "message" }, told(finding.message, finding.time))),
    h("div", { class: "inside" }, finding.topic === null ? null : h("p", null, "Partition: ", topicChip(finding.topic, finding.partition)), finding.known_bug ? h("p", null, "Known bug: ", linked(finding.known_bug)) : null,
      finding.cause ? h("p", null, "Cause: ", inWords(finding.cause)) : null, finding.records !== null ? h("p", null, "Requests or records: ", count(finding.records)) : null, finding.brokers.length ? h("p", null, "Brokers: ", chips(finding.brokers)) : null,
      finding.implied.length ? h("div", { class: "implied" }, h("p", null, `From it ${finding.implied.length === 1 ? "follows" : "follow"}:`), finding.implied.map((other) => findingBlock(other, severity, true))) : null,
      finding.evidence.length ? [finding.evidence_order ? noted(finding.evidence_order) : null, finding.evidence.map((line) => lineBlock(line, true))] : noted(finding.evidence_left_out ? "Its lines are left out here for their size: report.json and gold.evidence have them." : "No evidence lines."),
      nested ? null : asks([["Its story, line by line:", asked("trace finding", finding.finding_id.slice(0, 8))], ...(finding.topic !== null && finding.partition !== null ? ofPartition(finding.topic + "-" + finding.partition, null, WHOLE) : [])]),
      nested ? null : h("p", null, h("a", { href: "#" + anchor("finding", finding.finding_id) }, "Link to this finding"), " \u00b7 ", h("a", { href: "#" + anchor("rule", finding.rule_id) }, "The rule"))));
}
// Chains of incidents, the worst first: those of the cards, then the others.
const CHAINS = DATA.chains.map(({ head, parts }, at) => ({ number: at + 1, head: DATA.incidents[head], parts: parts.map((part) => DATA.incidents[part]) }));
const isWithin = (chain, range) => chain.parts.some((part) => inRange(range, part.start_time, part.end_time));
// Chains without a card: by kind, or those of the range.
function drawRest(place, state) {
  const cards = every(".card").length, rest = CHAINS.slice(cards), kinds = new Map();
  const item = (chain) => {
    const { head } = chain, choose = () => chooseIncident({ from: head.start_time, until: head.end_time || "" });
    return h("li", null, h("b", null, `${chain.number}. ${head.word}`), " ", h("button", { type: "button", onclick: choose }, when(head.start_time).slice(0, 8)), " ", told(head.sentence, head.start_time), " ", h("a", { href: "#" + anchor("incident", head.incident_id) }, "Lines and commands"));
  };
  const list = (chains) => h("ul", { class: "rest" }, chains.map(item));
  if (!isWhole()) { put(place, list(rest.filter((chain) => isWithin(chain, state.range)))); return; }
  for (const chain of rest) kinds.set(chain.head.kind, [...(kinds.get(chain.head.kind) || []), chain]);
  put(place, rest.length ? h("p", null, `${plural(rest.length, "more incident")}:`) : null, [...kinds].map(([kind, chains]) => folded(`${inWords(kind)} (${count(chains.length)})`, list(chains))));
}
function drawIncidents(place, state) {
  const order = ["LOST", "BROKEN", "UNAVAILABLE", "REJECTED", "AT RISK", "SLOW", "NOTE"];
  put(place, table([
    column("Harm", (row) => order.indexOf(row.word), (value, row) => h("span", { class: "tag" }, row.word)), column("from", "start_time", when), column("to", (row) => row.end_time || "\uffff", (value, row) => (row.end_time ? when(value) : "the end of the logs")),
    column("brokers", (row) => row.broker_ids.join(" "), (value, row) => chips(row.broker_ids, row.cluster_id)), column("what happened", "sentence", (value, row) => [told(value, row.start_time), row.known_bug ? [" Known bug ", linked(row.known_bug.id), "."] : ""], { long: true, plain: true }),
  ], { rows: DATA.incidents.filter((row) => inRange(state.range, row.start_time, row.end_time)), wide: true, anchor: (row) => anchor("incident", row.incident_id), empty: DATA.incidents.length ? "None in this range." : "No incident in these logs.",
    open: (row) => [row.advice ? h("p", null, told(row.advice, row.start_time)) : null, asks(row.commands.map((text) => ["", text])), row.evidence.length ? row.evidence.map((line) => lineBlock(line, true)) : noted("No evidence lines.")] }));
}
const words = (value) => (value !== null && typeof value === "object" ? Object.values(value).map(words).join(" ") : String(value));
// Findings of one rule and one sentence, but for names and numbers.
const ALIKE_MIN = 3;
function groupedFindings(findings) {
  const found = new Map();
  for (const finding of findings) {
    const key = finding.rule_id + " " + finding.message.replace(/\S*\d\S*/g, "#");
    found.set(key, [...(found.get(key) || []), finding]);
  }
  return [...found.values()];
}
function findingGroup(group, severity) {
  const [first] = group, places = [...new Set(group.map(placeOf))].filter(Boolean);
  return h("details", { class: "finding " + severity },
    h("summary", null, h("span", { class: "tag " + severity }, `${count(group.length)} alike`), " ", h("b", null, first.rule_id), " ", places.slice(0, 3).join("; "), places.length > 3 ? `; and ${plural(places.length - 3, "more place")}` : "", h("div", { class: "message" }, "The first: ", told(first.message, first.time))),
    h("div", { class: "inside" }, group.map((finding) => findingBlock(finding, severity, false))));
}
function drawFindings(place, state) {
  const sections = [["violation", "Violations", "Broken Kafka guarantees.", DATA.violations], ["open", "Undecided cases", "These logs do not decide them: each may be a violation.", DATA.open_cases], ["observation", "Observations", "Allowed by Kafka, worth knowing.", DATA.observations]].filter(([, , , all]) => all.length);
  put(place, sections.map(([severity, title, meaning, all]) => {
    const box = h("div", { class: "filterable" }), ranged = all.filter((finding) => inRange(state.range, finding.time));
    box.redraw = (most = SHOWN_FINDINGS) => {
      const those = ranged.filter((finding) => !state.filter || has(words(finding)));
      put(box, groupedFindings(those.slice(0, most)).map((group) => (group.length < ALIKE_MIN ? group.map((finding) => findingBlock(finding, severity, false)) : findingGroup(group, severity))), ranged.length ? filtered(those.length, ranged.length, "finding") : noted("None in this range."),
        those.length > most ? h("p", { class: "more" }, `${plural(those.length - most, "more finding")} not shown. `, h("button", { type: "button", onclick: () => box.redraw(most + 200) }, "Show more")) : null);
      decorate(box);
    };
    box.redraw();
    return [h("h3", null, title, " ", h("span", { class: "number" }, ranged.length === all.length ? count(all.length) : `${count(ranged.length)} of ${count(all.length)}`)), noted(meaning), box];
  }), sections.length ? null : h("p", null, DATA.rules.length ? "None of the rules found anything." : "No rule was run."),
  DATA.page.findings_left_out ? noted(`${plural(DATA.page.findings_left_out, "more finding")}: report.json lists them.`) : null);
}
function drawRules(place) {
  const texts = new Map(DETAIL.rules.map((rule) => [rule.rule_id, rule])), gaps = new Map(DATA.coverage.not_checkable.map((gap) => [gap.rule_id, gap]));
  const order = ["violated", "inconclusive", "not checkable", "clean", "not applicable"];
  const said = (row) => {
    if (row.state === "violated") return `Broken ${row.cases === 1 ? "once" : count(row.cases) + " times"}.`;
    return row.state === "clean" || row.state === "not applicable" ? "" : row.reason || "Not decided.";
  };
  const of = (rows) => table([
    column("Rule", "rule_id", (value) => h("b", null, value)), column("Verdict", (row) => order.indexOf(row.state), (value, row) => h("span", { class: "tag " + row.verdict }, row.state), { rare: rows[0] && rows[0].state === "not applicable" }),
    counted("Checked", "checked", { rare: true }), counted("Violations", "cases", { rare: true }), counted("Observations", "observations", { rare: true }), counted("Open", "open_cases", { rare: true }),
    column("What it says", "rule_id", (value, row) => [h("div", null, texts.has(row.rule_id) ? texts.get(row.rule_id).guarantee : ""), h("div", { class: "was" }, said(row))], { long: true, plain: true }),
  ], { rows, limit: 100, wide: true, anchor: (row) => anchor("rule", row.rule_id), empty: "No rule was run.",
    open: (row) => { const text = texts.get(row.rule_id), gap = gaps.get(row.rule_id); return [text ? h("p", null, "Source: ", linked(text.source), ". Needs ", text.tier, ": ", text.needs, ".") : null, gap ? h("p", null, gap.reason, ". ", command(gap.needs), gap.cost ? " " + gap.cost : "") : null, h("p", null, command("highwater explain " + row.rule_id))]; } });
  const rows = [...DATA.rules].sort((one, other) => order.indexOf(one.state) - order.indexOf(other.state)), idle = rows.filter((row) => row.state === "not applicable");
  const kept = rows.filter((row) => row.state === "clean");
  put(place, rows.length > kept.length + idle.length ? of(rows.filter((row) => !idle.includes(row) && !kept.includes(row))) : null,
    kept.length ? folded(`Kept: ${plural(kept.length, "rule")}`, of(kept)) : null, noted("Of all logs read, whatever the range. Facts are counted as often as a rule judged them."),
    idle.length ? folded(`Not applicable: ${plural(idle.length, "rule")} that nothing in these logs calls for`, of(idle)) : null);
}
function storyBlock(story) {
  const parts = PARTS.filter(([key]) => story.parts_ms[key]), all = parts.reduce((sum, [key]) => sum + story.parts_ms[key], 0);
  let passed = 0;
  const bar = parts.length ? h("figure", { class: "parts" }, svg("svg", { width: 560, height: 18, viewBox: "0 0 560 18", role: "img", "aria-label": "Parts of the wait" }, parts.map(([key, name], at) => { const x = (passed / all) * 560, width = (story.parts_ms[key] / all) * 560; passed += story.parts_ms[key]; return svg("rect", { x, y: 0, width: Math.max(0.5, width), height: 18, class: "part part-" + at }, svg("title", null, `${name}: ${ms(story.parts_ms[key])} ms`)); })),
    h("figcaption", null, parts.map(([key, name], at) => h("span", { class: "key part-" + at }, `${name} ${ms(story.parts_ms[key])} ms`)))) : null;
  return h("div", { class: "story" }, h("p", null, `${story.api} of client `, h("b", null, story.client_id === null ? "?" : story.client_id), `, correlation id ${story.correlation_id}, connection ${story.connection}`, story.known_bug ? [". Signature of ", linked(story.known_bug)] : "", ". ", h("a", { href: "#" + anchor("request", story.request_id) }, "Link to this request")),
    bar, h("ol", { class: "steps" }, story.steps.map((step) => h("li", null, h("span", { class: "time" }, when(step.time)), " ", told(step.what, step.time), step.text || step.file ? folded("its line", lineBlock(step)) : null))),
    asks([["The same from the tables:", asked("trace request", story.request_id)], ...ofPartition(story.closing_partition, story.cluster_id, WHOLE).slice(0, 1)]),
    story.partitions.length > 1 ? table([column("Partition", (part) => part.topic + "-" + part.partition, (value, part) => topicChip(part.topic, part.partition)), number("epoch", "leader_epoch"), number("offsets from", "base_offset"), number("to, exclusive", "required_offset"), column("cause", "cause", inWords), column("closing replica", "closing_replica", (value) => brokerChip(value, story.cluster_id)), column("ISR", (part) => part.isr.join(" "), (value, part) => chips(part.isr, story.cluster_id))], { rows: story.partitions, note: story.partitions_left_out ? `${plural(story.partitions_left_out, "more partition")} left out.` : null }) : null);
}
function drawRequests(place, state) {
  const rows = CLUSTER.stories.filter((story) => inRange(state.range, story.arrival));
  put(place, table([
    column("Arrival", "arrival", when), column("leader", "broker_id", brokerOf), column("client", "client_id", (value) => (value === null ? "-" : value), { long: true }),
    column("partition", "closing_partition", placeChip), duration("waited, ms", "wait_ms"), duration("distance, ms", "residual_ms", { hint: "From the predicted interval", rare: true }), column("class", "operation_class", (value, story) => value + (story.class_reason ? ", " + inWords(story.class_reason) : "")), column("cause", "cause", inWords),
    column("closing replica", "closing_replica", brokerOf), column("answer", (story) => story.error_codes.join(), (value, story) => (story.succeeded ? "no error" : story.error_codes.filter((code) => code).map((code) => ERRORS[code] || "error " + code).join(", "))),
  ], { rows, wide: true, anchor: (story) => anchor("request", story.request_id), open: storyBlock, empty: "None of these requests arrived in this range.", note: `The worst acks=all operations of the report and the worst of its intervals, ${count(CLUSTER.stories.length)} in all: contradicted ones first, then late ones, then the longest waits. Each opens to its story.` }));
}
function drawRestarts(place, state) {
  const rows = CLUSTER.restarts.filter((restart) => inRange(state.range, restart.down || restart.starting, restart.isr_full || restart.started));
  const endings = { clean: "shut down cleanly", found_gone: "ended without a shutdown", unknown: "unknown end" };
  const paid = (restart) => (CUBES ? paidBetween(restart.down || restart.starting, restart.isr_full || restart.started || restart.starting, restart.broker_id, restart.cluster_id) : { own_ms: null, all_ms: null, errors: null });
  const took = (from, to) => (from && to ? Date.parse(to) - Date.parse(from) : null);
  put(place, table([
    column("broker", "broker_id", brokerOf), column("went", "down", (value, row) => [when(value), h("div", { class: "was" }, endings[row.ending])]), column("starts", "starting", when), column("runs", "started", when),
    number("down for", (row) => took(row.down, row.started), span), number("ISRs left", "isr_lost"), number("taken back", "isr_back"), column("in all of them", "isr_full", when), number("from going to a full ISR", (row) => took(row.down || row.starting, row.isr_full), (value, row) => span(value) + (row.down || value === null ? "" : " from its start")),
    number("slow waiting for it, ms", (row) => paid(row).own_ms, ms, { hint: "Of produces, beyond " + SLOW_MS + " ms each, from its going to its being back" }), number("all slow waiting, ms", (row) => paid(row).all_ms, ms), number("produces with an error", (row) => paid(row).errors),
  ], { rows, wide: true, empty: "No broker came back in this range.", note: "Restart the next broker only when the previous one is back in all ISRs. Slow waiting includes other causes in the same intervals." }));
}
function drawFailovers(place, state) {
  const failovers = CLUSTER.failovers.filter((row) => inRange(state.range, row.time)), windows = CLUSTER.unavailable.filter((row) => inRange(state.range, row.start, row.end));
  const second = (time) => (time || "").slice(0, 19);
  put(place, h("h3", null, "No leader, or under min.insync.replicas"), table([
    column("Partition", (row) => row.topic + "-" + row.partition, (value, row) => partitionsOf(row)), column("state", "state", (value) => (value === "offline" ? "no leader" : "under min.insync.replicas")), column("from", "start", when), column("to", "end", (value) => (value ? when(value) : "the end of the logs")),
    number("lasted", "duration_ms", span), column("ISR", (row) => row.isr.join(" "), (value, row) => chips(row.isr, row.cluster_id)), number("min.insync.replicas", "min_insync_replicas"), number("produces refused", "produces_refused"),
  ], { rows: alike(windows, (row) => [row.state, second(row.start), second(row.end), row.isr, row.min_insync_replicas, row.produces_refused].join()), empty: "None in this range.", open: (row) => asks(ofPartition(row.topic + "-" + row.partition, row.cluster_id, state.range)), note: CLUSTER.left_out.unavailable ? `${plural(CLUSTER.left_out.unavailable, "shorter window")} left out.` : null }),
  CLUSTER.unavailable.some((row) => row.state === "offline" && row.end === null) ? asks([["What each replica holds of partitions that had no leader at the end, and what an election loses:", "highwater survivors"]]) : null,
  h("h3", null, "Moves of leaders"), table([
    column("Partition", (row) => row.topic + "-" + row.partition, (value, row) => partitionsOf(row)), column("when", "time", when), column("why", (row) => row.reason + (row.strategy ? ", " + row.strategy : ""), inWords), column("from", "old_leader", brokerOf), column("to", "new_leader", brokerOf), column("outcome", "outcome", inWords),
    number("until taken up", "to_taken_up_ms", span), number("until a request was answered", "to_serving_ms", (value, row) => (row.approximate && value !== null ? "about " : "") + span(value), { hint: "Later if no client asked sooner" }),
  ], { rows: alike(failovers, (row) => [second(row.time), row.reason, row.strategy, row.old_leader, row.new_leader, row.outcome].join()), empty: "None in this range.", note: CLUSTER.left_out.failovers ? `${plural(CLUSTER.left_out.failovers, "quicker move")} left out.` : "About: measured on the clocks of two brokers." }),
  h("h3", null, "Events"), table([
    column("Time", "time", when), column("broker", "broker_id", brokerOf), column("what", "detail", (value, row) => told(inWords(value), row.time), { long: true }), column("partitions", "count", (value, row) => row.partitions.map((name, at) => [at ? ", " : "", name]).concat(row.count > row.partitions.length && row.partitions.length ? [` and ${row.count - row.partitions.length} more`] : []), { long: true }),
  ], { rows: CLUSTER.events.filter((event) => inRange(state.range, event.time)), note: CLUSTER.left_out.events ? `${plural(CLUSTER.left_out.events, "event")} of the most frequent kinds left out.` : null }));
}
