// The form of a pair as a drawing: both lines with their tones, arcs between characters that are repeated.

import { drawing } from "../../page/elements.js";
import { language } from "../../page/language.js";
import { pinyin } from "../../page/pinyin.js";
import { word } from "./words.js";

const CELL = 36;
const HEIGHT = { arc: 20, character: 26, mark: 16, pinyin: 13 }; // of a row, in pixels
const MARKS = { ping: "○", ze: "●", unknown: "◐", punctuation: "" };
const HANZI = /\p{Script=Han}/u;

/** The drawing of a couplet with its tones, `{first, second, tones}`; in English with its reading. */
export function formDrawing(couplet) {
  const [first, second] = [[...couplet.first], [...couplet.second]];
  const { tones } = couplet;
  const length = Math.max(first.length, second.length);
  const width = length * CELL;
  const arcs = { first: repeats(first), second: repeats(second) };
  const above = arcs.first.length > 0 || arcs.second.length > 0 ? HEIGHT.arc : 4;
  const read = language() === "en" ? HEIGHT.pinyin : 0;
  const upper = above + read + HEIGHT.character; // baseline of the 上联
  const upperMarks = upper + HEIGHT.mark;
  const lowerMarks = upperMarks + HEIGHT.mark + 3;
  const lower = lowerMarks + HEIGHT.character;
  const height = lower + read + above + 6;
  const parts = [];
  const isClash = (at) => opposed(tones.first[at], tones.second[at]) === false;
  const write = (characters, y, name) =>
    characters.forEach((character, at) => parts.push(text(character, at, y, `written ${name}`)));
  const mark = (names, y) =>
    names.forEach((name, at) => parts.push(text(MARKS[name] ?? "", at, y, isClash(at) ? "mark clash" : "mark")));
  write(first, upper, "first");
  mark(tones.first, upperMarks);
  mark(tones.second, lowerMarks);
  write(second, lower, "second");
  if (read > 0) {
    first.forEach((character, at) => parts.push(text(pinyin(character), at, above + read - 3, "pinyin")));
    second.forEach((character, at) => parts.push(text(pinyin(character), at, lower + read, "pinyin")));
  }
  arcs.first.forEach(([from, to]) => parts.push(arc(from, to, above + 2, -1)));
  arcs.second.forEach(([from, to]) => parts.push(arc(from, to, lower + read + 6, 1)));
  const label = word("reportLabel", {
    first: first.join(""),
    second: second.join(""),
    firstTones: spoken(tones.first),
    secondTones: spoken(tones.second),
  });
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  return drawing("svg", { class: "form", role: "img", "aria-label": label, lang: "zh-Hans", ...size }, ...parts);
}

/** Neighbouring places of the same hanzi: [[2, 3], …]. */
function repeats(characters) {
  const last = new Map();
  const pairs = [];
  characters.forEach((character, place) => {
    if (!HANZI.test(character)) return;
    if (last.has(character)) pairs.push([last.get(character), place]);
    last.set(character, place);
  });
  return pairs;
}

/** Whether two tones are level against oblique; null where one is not known or there is none. */
function opposed(one, other) {
  const known = (name) => name === "ping" || name === "ze";
  return known(one) && known(other) ? one !== other : null;
}

const centre = (place) => (place + 0.5) * CELL;

function text(content, place, y, name) {
  return drawing("text", { x: centre(place), y, class: name, "text-anchor": "middle" }, content);
}

function arc(from, to, y, direction) {
  const rise = direction * Math.min(HEIGHT.arc - 4, 8 + 2 * (to - from));
  const middle = (centre(from) + centre(to)) / 2;
  return drawing("path", { class: "arc", d: `M${centre(from)} ${y} Q${middle} ${y + 2 * rise} ${centre(to)} ${y}` });
}

function spoken(names) {
  return names.map((name) => ({ ping: "平", ze: "仄", unknown: "？" })[name] ?? "").join("");
}
