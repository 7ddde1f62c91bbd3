// One candidate with its form: tones, repeated characters, the rules kept and broken, the score.

import { button, element, setVariable } from "../../page/elements.js";
import { formDrawing } from "./form_drawing.js";
import { word } from "./words.js";

/**
 * The card of a candidate.
 * @param {object} answer of /v1/couplet
 * @param {number} place of the candidate in it
 * @param {boolean} isHanging whether it is the one on the red paper
 * @param {(place: number) => void} hang takes it there
 */
export function candidateCard(answer, place, isHanging, hang) {
  const { text, score, form, relaxed } = answer.predictions[place];
  const take = button(
    text,
    { class: "candidate-text", lang: "zh-Hans", "aria-pressed": String(isHanging), title: word("show") },
    () => hang(place),
  );
  const report = element("div", { class: "report" }, formDrawing(answer, place));
  return element(
    "li",
    { class: isHanging ? "candidate hanging" : "candidate" },
    element("div", { class: "candidate-head" }, take, scoreBar(score)),
    report,
    element("ul", { class: "rules-kept" }, ...rules(form, relaxed)),
  );
}

function scoreBar(score) {
  const bar = setVariable(element("span", { class: "bar", "aria-hidden": "true" }), "--share", Math.exp(score));
  const told = element("span", {}, word("score", { score: score.toFixed(2).replace("-", "−") }));
  return element("span", { class: "score", title: word("scoreMeaning") }, told, bar);
}

function rules(form, relaxed) {
  const share = `${Math.round(form.tone_opposed * 100)}%`;
  const chips = [
    chip(word("tonesOpposed", { share }), form.tone_opposed >= 0.5),
    chip(word("finalPair"), form.final_pair),
    chip(word("repeatsMirrored"), form.repeats_mirrored),
    chip(word("noSharedCharacter"), !form.shares_character),
    chip(word("lengthEqual"), form.length_equal),
    chip(word("punctuationAligned"), form.punctuation_aligned),
  ];
  if (relaxed?.length) chips.push(chip(word("relaxed", { rules: relaxed.map((rule) => word(rule)).join(", ") }), false));
  return chips;
}

function chip(text, isKept) {
  const mark = element("span", { "aria-hidden": "true" }, isKept ? "✓ " : "✗ ");
  const meaning = element("span", { class: "unseen" }, ` (${word(isKept ? "kept" : "broken")})`);
  return element("li", { class: isKept ? "kept" : "broken" }, mark, text, meaning);
}
