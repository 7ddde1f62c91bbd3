// One couplet of those to choose from: its form, the rules kept and broken, the score, whether it is known.

import { button, element, setVariable } from "../../page/elements.js";
import { formDrawing } from "./form_drawing.js";
import { word } from "./words.js";

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
    { class: "candidate-text", lang: "zh", "aria-pressed": String(isHanging), title: word("show") },
    hang,
  );
  take.append(...text);
  const head = element("div", { class: "candidate-head" }, take);
  if (part !== undefined) head.append(element("span", { class: "aside" }, word("partOfSet", { set, part })));
  if (score !== undefined) head.append(scoreBar(score));
  if (original !== undefined) head.append(element("span", { class: "aside" }, word("changedByHand")));
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
  return element("span", { class: "aside" }, label, " ", bar);
}

/** The rules that are broken, or one mark for all that are kept. */
function rules({ form, relaxed, broken = [] }) {
  const share = `${Math.round(form.tone_opposed * 100)}%`;
  const kept = {
    tonesOpposed: form.tone_opposed >= 0.5,
    finalPair: form.final_pair,
    repeatsMirrored: form.repeats_mirrored,
    noSharedCharacter: !form.shares_character,
    lengthEqual: form.length_equal,
    punctuationAligned: form.punctuation_aligned,
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
  if (isWhole || distance === 0) return [element("p", { class: "known" }, word(isWhole ? "knownWhole" : "knownLine"), pair)];
  const summary = element("summary", {}, word("knownNearly"));
  return [element("details", { class: "known" }, summary, pair, " ", word("knownDistance", { distance }))];
}
