// Tables: sorted by any column, cut at a limit that is told, beside a baseline where there is one.
"use strict";
const ROWS_SHOWN = 25;

// A column: name, get(row) or the name of a field, show(value), num, rate (a count: changes are per second), hint, rare (0 tells nothing).
// Options: id, rows, base (rows of the baseline), times (seconds of both ranges), main (column that change is sorted by), note, empty, open(row).
function table(columns, options) {
  const box = h("div", { class: "tablebox filterable" });
  const view = { sort: null, down: true, shown: options.limit || ROWS_SHOWN };
  const rows = options.base ? paired(options.rows, options.base) : options.rows.map((row) => ({ row, base: null, change: null }));
  columns = columns.filter((column) => rows.some((pair) => informs(column, pair)));
  if (options.base) {
    const main = columns.find((column) => column.name === options.main) || columns.find((column) => column.num);
    for (const pair of rows) pair.change = main ? change(main, pair, options.times) : null;
    rows.sort((one, other) => size(other.change) - size(one.change));
  }
  function draw() {
    const isFiltered = state.filter && (!state.fields.size || columns.some((column) => state.fields.has(fieldOf(column)))), those = isFiltered ? rows.filter((pair) => textsOf(pair).some(has)) : rows;
    const more = those.length > view.shown
      ? h("p", { class: "more" }, `${plural(those.length - view.shown, "more row")} not shown. `, h("button", { type: "button", onclick: () => { view.shown += 200; draw(); } }, "Show more"))
      : null;
    put(box, those.length ? h("table", { class: options.wide ? "wide" : null }, h("thead", null, h("tr", null, columns.map(header))), h("tbody", null, those.slice(0, view.shown).map((pair) => tableRow(columns, pair, options)))) : null,
      those.length ? h("p", { class: "export" }, ["copy", "CSV"].map((word) => h("button", { type: "button", class: "copy", onclick: (event) => give(event.target, exported(columns, those, options)) }, word))) : null,
      rows.length ? (isFiltered || !state.filter ? filtered(those.length, rows.length, "row") : noted("Not filtered: this table has no column for it.")) : noted(options.empty || "Nothing in this range."), more, options.note ? noted(options.note) : null);
    decorate(box);
  }
  function header(column) {
    const sorted = view.sort === column;
    const press = () => {
      view.down = sorted ? !view.down : Boolean(column.num);
      view.sort = column;
      const value = (pair) => column.get(pair.row || pair.base);
      rows.sort((one, other) => (view.down ? -1 : 1) * compare(value(one), value(other)));
      draw();
    };
    return h("th", { class: column.num ? "num" : null, scope: "col", "aria-sort": sorted ? (view.down ? "descending" : "ascending") : null, title: column.hint },
      column.plain ? column.name : h("button", { type: "button", onclick: press }, column.name, sorted ? (view.down ? " \u2193" : " \u2191") : ""));
  }
  const textsOf = (pair) => (pair.texts ||= [...tableRow(columns, pair, options)[0].children].map((cell) => cell.textContent));
  box.fields = () => columns.filter((column, at) => !column.num && rows.some((pair) => has(textsOf(pair)[at]))).map(fieldOf);
  box.redraw = draw;
  draw();
  return box;
}
function informs(column, pair) {
  return [pair.row, pair.base].some((row) => { const value = row ? column.get(row) : null; return value !== null && value !== undefined && value !== "" && !(column.rare && value === 0); });
}
// --- the filter
const has = (text) => text.toLowerCase().includes(state.filter);
// What a column names: a filter by a partition leaves tables without partitions as they are.
const fieldOf = ({ name }) => (/client|partition|broker|leader|replica/i.exec(name) || [name])[0].toLowerCase().replace(/leader|replica/, "broker");
function filterBy(text) {
  state.filter = text.trim().toLowerCase();
  const boxes = every(".filterable");
  state.fields = new Set(state.filter ? boxes.flatMap((box) => (box.fields ? box.fields() : [])) : []);
  boxes.forEach((box) => box.redraw());
  every(".card").forEach((card) => { card.hidden = !has(card.textContent); });
}
// Rows with one key as the first of them, with all of them as `alike`.
function alike(rows, key) {
  const found = new Map();
  for (const row of rows) {
    const first = found.get(key(row));
    if (first) first.alike.push(row);
    else found.set(key(row), { ...row, alike: [row] });
  }
  return [...found.values()];
}
function filtered(shown, all, word) {
  return state.filter && shown < all ? noted(`${shown ? count(shown) : "None"} of ${plural(all, word)} ${shown === 1 ? "has" : "have"} the text of the filter, `, h("b", null, state.filter), ".") : null;
}
// --- a table for others: numbers and times as they are
function exported(columns, pairs, options) {
  const cell = (column, row) => {
    const value = row ? column.get(row) : null;
    if (column.num || column.show === when) return value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    const text = h("td", null, row ? (column.show ? column.show(value, row) : value) : "").textContent;
    return text === "-" ? "" : /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  };
  const unit = (column) => (column.show === span ? ", ms" : "");
  const those = columns.flatMap((column) => (options.base && column.num && !column.fixed ? [[column, "row", ""], [column, "base", ", baseline"]] : [[column, null, ""]]));
  return [those.map(([column, , beside]) => column.name + unit(column) + beside), ...pairs.map((pair) => those.map(([column, side]) => cell(column, side ? pair[side] : pair.row || pair.base)))];
}
function give(button, lines) {
  if (button.textContent !== "CSV") { copy(lines.map((line) => line.map((text) => plainText(text.replace(/[\t\r\n]+/g, " "))).join("\t")).join("\n"), button); return; }
  const heading = every("h2, h3").filter((one) => one.compareDocumentPosition(button) & Node.DOCUMENT_POSITION_FOLLOWING).pop();
  const text = lines.map((line) => line.map(plainText).map((part) => (/[",\r\n]/.test(part) ? '"' + part.replaceAll('"', '""') + '"' : part)).join(",")).join("\r\n");
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: "highwater-" + heading.textContent.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-") + ".csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
// Spreadsheets take such a text for a formula.
function plainText(text) {
  return /^(?:\s*(?:[=@]|[+\-](?!(?:\d+(?:\.\d+)?)?$))|[\t\r])/.test(text) ? "'" + text : text;
}
function compare(one, other) {
  const left = one === null || one === undefined ? -Infinity : one, right = other === null || other === undefined ? -Infinity : other;
  return left < right ? -1 : left > right ? 1 : 0;
}
const size = (value) => (value === null ? -1 : Math.abs(value));
function paired(rows, base) {
  const found = new Map();
  for (const row of rows) found.set(row.key, { row, base: null, change: null });
  for (const row of base) {
    if (found.has(row.key)) found.get(row.key).base = row;
    else found.set(row.key, { row: null, base: row, change: null });
  }
  return [...found.values()];
}
// As a ratio's logarithm, so that twice and half as much are equally far; of counts per second.
function change(column, pair, times) {
  if (column.fixed) return null;
  const now = pair.row ? column.get(pair.row) : column.rate ? 0 : null, then = pair.base ? column.get(pair.base) : column.rate ? 0 : null;
  if (now === null || then === null || now === undefined || then === undefined) return null;
  const per = column.rate ? [now / times[0], then / times[1]] : [now, then];
  if (per[0] === per[1]) return 0;
  const least = 1e-6;
  return Math.log2(Math.max(per[0], least) / Math.max(per[1], least));
}
function changeText(value) {
  if (value === null) return "";
  const ratio = Math.pow(2, value);
  if (value === 0) return "";
  if (ratio > 1000) return "new";
  if (ratio < 0.001) return "gone";
  return ratio >= 2 ? "\u00d7" + ratio.toFixed(1) : (ratio >= 1 ? "+" : "\u2212") + Math.abs((ratio - 1) * 100).toFixed(0) + "%";
}
function tableRow(columns, pair, options) {
  const known = pair.row || pair.base;
  const cells = columns.map((column) => {
    const value = pair.row ? column.get(pair.row) : column.rate ? 0 : null;
    const content = column.show ? column.show(pair.row || !column.num ? (pair.row ? value : column.get(pair.base)) : value, known) : value;
    const beside = options.base && column.num && !column.fixed
      ? h("div", { class: "was" }, (column.show ? column.show(pair.base ? column.get(pair.base) : column.rate ? 0 : null, pair.base || known) : column.get(pair.base)), " ", h("b", null, changeText(change(column, pair, options.times))))
      : null;
    return h("td", { class: [column.num ? "num" : "", column.long ? "long" : ""].join(" ").trim() || null }, content, beside);
  });
  const line = h("tr", { id: options.anchor ? options.anchor(known) : null }, cells);
  if (!options.open) return [line];
  const content = h("tr", { class: "opened", hidden: true }, h("td", { colspan: columns.length }));
  const toggle = (wanted) => {
    const opening = wanted === undefined ? content.hidden : wanted;
    if (opening && !content.firstChild.firstChild) { put(content.firstChild, options.open(known)); decorate(content); }
    content.hidden = !opening;
    button.setAttribute("aria-expanded", String(opening));
    button.textContent = opening ? "\u25be" : "\u25b8";
  };
  const button = h("button", { type: "button", class: "twist", "aria-expanded": "false", "aria-label": "Details", onclick: () => toggle() }, "\u25b8");
  line.firstChild.prepend(button, " ");
  line.openDetails = () => toggle(true);
  return [line, content];
}
const column = (name, get, show, more) => ({ name, get: typeof get === "string" ? (row) => row[get] : get, show, ...(more || {}) });
const number = (name, get, show, more) => column(name, get, show || count, { num: true, ...(more || {}) });
const counted = (name, get, more) => number(name, get, count, { rate: true, ...(more || {}) });
const duration = (name, get, more) => number(name, get, ms, more);

// --- things that can be marked everywhere
function brokerChip(broker_id, cluster_id) {
  if (broker_id === null || broker_id === undefined) return h("span", { class: "none" }, "-");
  const name = brokerName(broker_id, cluster_id);
  return h("button", { type: "button", class: "chip", "data-mark": "b:" + name, title: "Mark broker " + seen(name) + " everywhere" }, name);
}
const brokerOf = (value, row) => brokerChip(value, row.cluster_id);
const nodeChip = (place) => brokerChip(NODES[place].broker_id, NODES[place].cluster_id);
function topicChip(topic, partition) {
  if (topic === null || topic === undefined) return h("span", { class: "none" }, "-");
  return h("span", { class: "place" }, h("button", { type: "button", class: "chip topic", "data-mark": "t:" + topic, title: "Mark this topic everywhere" }, topic), partition === null || partition === undefined ? "" : "-" + partition);
}
const chips = (brokers, cluster_id) => brokers.map((broker, place) => [place ? " " : "", brokerChip(broker, cluster_id)]);
// The partition of a row, and those of the rows like it.
function partitionsOf(row) {
  const first = topicChip(row.topic, row.partition), more = row.alike.slice(1);
  return more.length ? [first, folded(`and ${plural(more.length, "more partition")}`, more.map((other, at) => [at ? ", " : "", topicChip(other.topic, other.partition)]))] : first;
}
function placeChip(name) {
  if (!name) return h("span", { class: "none" }, "-");
  const cut = name.lastIndexOf("-");
  return cut > 0 ? topicChip(name.slice(0, cut), name.slice(cut + 1)) : name;
}
