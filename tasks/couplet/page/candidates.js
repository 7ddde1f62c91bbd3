// One couplet of those to choose from: its form, the rules kept and broken, the score, whether it is known.

import { button, element, setVariable } from "../../page/elements.js";
import { formDrawing } from "./form_drawing.js";
import { word } from "./words.js";

// Rules that the form says nothing of.
const OTHER_RULES = ["alternating_tones", "clause_ends", "opposed_tones"];

/**
 * The card of a couplet.
 * @param {import("./couplets.js").Couplet} couplet
 * @param {boolean} isHanging whether it is the one on the red paper
 * @param {() => void} hang takes it there
 */
export function candidateCard(couplet, isHanging, hang) {
  const { first, second, written, score, form, known, original, set, part } = couplet;
  const lines = { first: [first], second: [second] }[written] ?? [first, second];
  const text = lines.map((line) => element("span", {}, line));
  const take = button(
    "",
    { class: "candidate-text", lang: "zh-Hans", "aria-pressed": String(isHanging), title: word("show") },
    hang,
  );
  take.append(...text);
  const head = element("div", { class: "candidate-head" }, take);
  if (part !== undefined) head.append(element("span", { class: "aside" }, word("partOfSet", { set, part })));
  if (score !== undefined) head.append(scoreBar(score));
  if (original !== undefined) head.append(element("span", { class: "aside" }, word("changedByHand")));
  const card = element("li", { class: isHanging ? "candidate hanging" : "candidate" }, head);
  card.append(element("div", { class: "report" }, formDrawing(couplet)));
  if (form !== undefined) card.append(element("ul", { class: "rules-kept" }, ...rules(couplet)));
  if (known) card.append(knownNote(couplet));
  return card;
}

function scoreBar(score) {
  const bar = setVariable(element("span", { class: "bar", "aria-hidden": "true" }), "--share", Math.exp(score));
  const told = element("span", {}, word("score", { score: score.toFixed(2).replace("-", "−") }));
  return element("span", { class: "score", title: word("scoreMeaning") }, told, bar);
}

function rules({ form, relaxed, broken = [] }) {
  const share = `${Math.round(form.tone_opposed * 100)}%`;
  const chips = [
    chip(word("tonesOpposed", { share }), form.tone_opposed >= 0.5),
    chip(word("finalPair"), form.final_pair),
    chip(word("repeatsMirrored"), form.repeats_mirrored),
    chip(word("noSharedCharacter"), !form.shares_character),
    chip(word("lengthEqual"), form.length_equal),
    chip(word("punctuationAligned"), form.punctuation_aligned),
  ];
  chips.push(...broken.filter((rule) => OTHER_RULES.includes(rule)).map((rule) => chip(word(rule), false)));
  if (relaxed?.length) chips.push(chip(word("relaxed", { rules: relaxed.map((rule) => word(rule)).join(", ") }), false));
  return chips;
}

function chip(text, isKept) {
  const mark = element("span", { "aria-hidden": "true" }, isKept ? "✓ " : "✗ ");
  const meaning = element("span", { class: "unseen" }, ` (${word(isKept ? "kept" : "broken")})`);
  return element("li", { class: isKept ? "kept" : "broken" }, mark, text, meaning);
}

/** The nearest couplet of the corpus; `distance` is that of the line that the model wrote. */
function knownNote({ first, second, known }) {
  const { distance } = known;
  const isWhole = known.first === first && known.second === second;
  const told = isWhole ? word("knownWhole") : distance === 0 ? word("knownLine") : word("knownNearly", { distance });
  const pair = element("span", { lang: "zh-Hans" }, `${known.first} / ${known.second}`);
  return element("p", { class: distance === 0 ? "known whole" : "known" }, told, pair);
}
