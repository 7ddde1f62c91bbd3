// One couplet of those to choose from: its form, the rules kept and broken, the score, whether it is known.

import { HAN } from "../../page/brush.js";
import { pinyin } from "../../page/characters.js";
import { button, drawing, element, setVariable } from "../../page/elements.js";
import { language } from "../../page/language.js";
import { word } from "./words.js";

const CELL = 36;
const HEIGHT = { arc: 20, character: 26, mark: 16, pinyin: 13 }; // of a row, in pixels
const MARKS = { ping: "○", ze: "●", unknown: "◐", punctuation: "" };
// Rules that the form says nothing of.
const OTHER_RULES = ["alternating_tones", "clause_ends", "opposed_tones"];

/**
 * The card of a couplet.
 * @param {import("./couplets.js").Couplet} couplet
 * @param {{first: string, second: string}} shown its lines as they are to be read
 * @param {boolean} isHanging whether it is the one on the paper
 * @param {() => void} hang takes it there
 */
export function candidateCard(couplet, shown, isHanging, hang) {
  const { written, score, form, known, original, set, part } = couplet;
  const lines = { first: [shown.first], second: [shown.second] }[written] ?? [shown.first, shown.second];
  const text = lines.map((line) => element("span", {}, line));
  const take = button(
    "",
    { class: "candidate-text quiet lines", lang: "zh", "aria-pressed": String(isHanging), title: word("show") },
    hang,
  );
  take.append(...text);
  const head = element("div", { class: "candidate-head" }, take);
  if (part !== undefined) head.append(element("span", { class: "hint" }, word("partOfSet", { set, part })));
  if (score !== undefined) head.append(scoreBar(score));
  if (original !== undefined) head.append(element("span", { class: "hint" }, word("changedByHand")));
  const card = element("li", { class: isHanging ? "candidate hanging" : "candidate" }, head);
  card.append(element("div", { class: "report", role: "group", "aria-label": word("tones"), tabindex: 0 }, formDrawing({ ...couplet, ...shown })));
  if (form !== undefined) card.append(element("ul", { class: "rules-kept" }, ...rules(couplet)));
  if (known) card.append(...knownNote(couplet));
  return card;
}

function scoreBar(score) {
  const share = Math.exp(score);
  const label = word("score", { share: Math.round(share * 100) });
  const bar = setVariable(element("span", { class: "bar", "aria-hidden": "true" }), "--share", share);
  return element("span", { class: "hint" }, label, " ", bar);
}

/** The rules that are broken, or one mark for all that are kept. */
function rules({ form, relaxed, broken = [] }) {
  const share = `${Math.round(form.tone_opposed * 100)}%`;
  const kept = {
    tonesOpposed: form.tone_opposed >= 0.5,
    finalPair: form.final_pair,
    mirror_repeats: form.repeats_mirrored,
    no_shared_character: !form.shares_character,
    same_length: form.length_equal,
    copy_punctuation: form.punctuation_aligned,
  };
  const names = Object.keys(kept).filter((name) => !kept[name]);
  names.push(...broken.filter((rule) => OTHER_RULES.includes(rule)));
  const chips = names.map((name) => chip(word(name, { share }), false));
  if (relaxed?.length) chips.push(chip(word("relaxed", { rules: relaxed.map((rule) => word(rule)).join(", ") }), false));
  return chips.length > 0 ? chips : [chip(word("allKept"), true)];
}

function chip(text, isKept) {
  const mark = element("span", { "aria-hidden": "true" }, isKept ? "✓ " : "✗ ");
  const meaning = element("span", { class: "unseen" }, ` (${word(isKept ? "kept" : "broken")})`);
  return element("li", { class: isKept ? "kept" : "broken" }, mark, text, meaning);
}

/** The nearest couplet of the corpus; `distance` is that of the line that the model wrote. That a whole couplet or a
 * line is known is said at once, what is only like it where somebody asks. Of a person's lines only a whole couplet
 * counts: the line that was given may well stand there. */
function knownNote({ first, second, written, original, known }) {
  const { distance } = known;
  const isWhole = known.first === first && known.second === second;
  if (!isWhole && (written === null || original !== undefined)) return [];
  const pair = element("span", { lang: "zh-Hans" }, `${known.first} / ${known.second}`);
  if (isWhole || distance === 0) return [element("p", { class: "known hint" }, word(isWhole ? "knownWhole" : "knownLine"), pair)];
  const summary = element("summary", {}, word("knownNearly"));
  return [element("details", { class: "known hint" }, summary, pair, " ", word("knownDistance", { distance }))];
}

/** The drawing of a couplet with its tones, `{first, second, tones}`; in English with its reading. */
function formDrawing(couplet) {
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
  const isClash = (at) => ["ping", "ze"].includes(tones.first[at]) && tones.first[at] === tones.second[at];
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
    if (!HAN.test(character)) return;
    if (last.has(character)) pairs.push([last.get(character), place]);
    last.set(character, place);
  });
  return pairs;
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
