// Elements and text. Nothing here, or anywhere in the page, makes markup of text: logs are hostile.
"use strict";
const SVG = "http://www.w3.org/2000/svg";

// Characters that show nothing, or turn round what stands beside them, shown by their number.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
function seen(text) {
  return String(text).replace(UNSEEN, (char) => "\u27e8U+" + char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(4)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(seen(child)));
  }
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
// What an object has of its own: a log may well name a thing `constructor`.
const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined);
// A word of a command line, quoted where a shell would read more than text into it; null where it is better not pasted.
function word(text) {
  if (text === null || text === undefined || text === "" || seen(text) !== text || /[\t\n]/.test(text)) return null;
  return /^[\w.,:@%+=/-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}
const noted = (...text) => h("p", { class: "note" }, text);
const folded = (summary, ...content) => h("details", null, h("summary", null, summary), content);
const every = (selector) => [...document.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);
function put(place, ...children) {
  place.replaceChildren();
  fill(place, null, children);
}
const anchor = (kind, name) => kind + "-" + encodeURIComponent(name).replace(/[^A-Za-z0-9._-]/g, (char) => "." + char.charCodeAt(0).toString(16));

// Issues and proposals of Kafka, as links: what is named is ours, of rules and known bugs, and never a log's text.
const LINKED = { KAFKA: (name) => "https://issues.apache.org/jira/browse/" + name, KIP: (name) => "https://cwiki.apache.org/confluence/dosearchsite.action?cql=space%3DKAFKA+and+title~%22" + name + "%22" };
function linked(text) {
  return seen(text).split(/\b((?:KAFKA|KIP)-\d{1,6})\b/).map((part, at) => (at % 2 ? h("a", { href: LINKED[part.split("-")[0]](part), rel: "noreferrer noopener", target: "_blank" }, part) : part));
}

// --- numbers as people read them
const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const count = (value) => (value === null || value === undefined ? "-" : GROUPED.format(value));
function ms(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  return value.toLocaleString("en-US", { minimumFractionDigits: size < 10 ? 2 : size < 1000 ? 1 : 0, maximumFractionDigits: size < 10 ? 2 : size < 1000 ? 1 : 0 });
}
function share(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const text = (value * 100).toFixed(2) + "%";
  if (text === "100.00%" && value < 1) return ">99.99%";
  return text === "0.00%" && value > 0 ? "<0.01%" : text;
}
const seconds = (value_ms) => (value_ms === null || value_ms === undefined ? "-" : (value_ms / 1000).toLocaleString("en-US", { maximumFractionDigits: value_ms < 100000 ? 1 : 0 }) );
function span(value_ms) {
  if (value_ms === null || value_ms === undefined) return "-";
  if (value_ms < 1000) return ms(value_ms) + " ms";
  if (value_ms < 120000) return seconds(value_ms) + " s";
  const minutes = value_ms / 60000;
  return minutes < 120 ? minutes.toFixed(1) + " min" : (minutes / 60).toFixed(1) + " h";
}
const iso = (time_ms) => new Date(time_ms).toISOString();
// --- times: UTC, or the zone of the browser
const ZONE = { local: false };
// An instant as 2026-11-20T15:39:00.123, in the zone that is shown.
function wall(time_ms) { return iso(ZONE.local ? time_ms - new Date(time_ms).getTimezoneOffset() * 60000 : time_ms).slice(0, 23); }
const clock = (time_ms, fine) => wall(time_ms).slice(11, fine ? 23 : 19);
function when(text) { return text ? clock(Date.parse(text), true) : "-"; }
const TIMES = /(?:--[a-z]+ |\.\.)\d{4}-\S+|\d{4}-\d\d-\d\dT\S+?\.\.\S*|(?<![\w.:/-])(?:(\d{4}-\d\d-\d\d)([ T]))?(\d\d:\d\d:\d\d)(\.\d{1,3})?Z?(?![\w/-]|[:,]\d)|\bUTC\b/g;
const DAY_MS = 86400000;
// A sentence with its times in the zone that is shown. A time without a date is the one next to the time before it; `at`, ISO 8601, comes before all.
function told(text, at) {
  if (!ZONE.local || !text) return text;
  let last = at ? Date.parse(at) : NaN, day = at ? wall(last).slice(0, 10) : "";
  return text.replace(TIMES, (all, date, gap, time, rest) => {
    if (all === "UTC") return "local time";
    if (!time || (!date && Number.isNaN(last))) return all;
    const same = Date.parse(`${date || iso(last).slice(0, 10)}T${time}${rest || ""}Z`);
    last = date ? same : [same, same - DAY_MS, same + DAY_MS].reduce((best, one) => (Math.abs(one - last) < Math.abs(best - last) ? one : best));
    const shown = wall(last), isNew = date || shown.slice(0, 10) !== day;
    day = shown.slice(0, 10);
    return (isNew ? day + (gap || " ") : "") + shown.slice(11, 19 + (rest || "").length);
  });
}
function ago(time_ms, now_ms) {
  const minutes = Math.floor((now_ms - time_ms) / 60000), [size, noun] = [[1440, "day"], [60, "hour"], [1, "minute"]].find(([size]) => minutes >= 2 * size) || [0, ""];
  return size ? plural(Math.floor(minutes / size), noun) + " ago" : "now";
}
// A name of a table in words: lost_wake_up as lost wake up.
const inWords = (value) => (value === null || value === undefined ? "-" : String(value).replaceAll("_", " "));
const plural = (number, word) => count(number) + " " + word + (number === 1 ? "" : "s");
