// What the model attended to: choosing a written word shades the words of its source.

import { button, element, setVariable } from "./elements.js";
import { word } from "./language.js";

const MOST = 3; // words named in the sentence
const MARKS = { "<cls>": "⊢", "<eos>": "⊣", "<speaker>": "▸", "<listener>": "◂" };

/**
 * The view of an attention.
 * @param {?{source: string[], target: string[], weights: number[][]}} attention [target][source]
 * @param {string} lang of the texts, e.g. "en"
 * @param {boolean} isOfShown false if the shown text is not the best one, to which the attention belongs
 */
export function attentionView(attention, lang, isOfShown = true) {
  if (!attention) return element("p", { class: "attention" }, word("attentionMissing"));
  const { source, target, weights } = attention;
  const words = source.map((token) => element("span", { class: "token" }, shown(token)));
  const said = element("p", { class: "looked", "aria-live": "polite", lang: document.documentElement.lang });
  const choices = [null, ...target.keys()].map((place) => {
    const label = place === null ? word("attentionAll") : shown(target[place]);
    const made = button(label, { class: place === null ? "token all" : "token" }, () => look(place));
    made.dataset.place = place ?? "";
    return made;
  });

  function look(place) {
    const row = place === null ? mean(weights) : weights[place];
    const most = Math.max(...row, 1e-9);
    row.forEach((weight, at) => setVariable(words[at], "--weight", (weight / most).toFixed(3)));
    words.forEach((token, at) => token.setAttribute("title", percent(row[at])));
    for (const choice of choices) choice.setAttribute("aria-pressed", String(choice.dataset.place === String(place ?? "")));
    const named = [...row.keys()]
      .sort((one, other) => row[other] - row[one])
      .slice(0, MOST)
      .map((at) => `${shown(source[at])} ${percent(row[at])}`)
      .join(", ");
    said.textContent =
      place === null
        ? word("attentionMostAll", { words: named })
        : word("attentionMost", { word: shown(target[place]), words: named });
  }

  look(null);
  return element(
    "div",
    { class: "attention" },
    element("p", { class: "hint" }, word("attentionHint"), isOfShown ? "" : ` ${word("attentionOfFirst")}`),
    element("p", { class: "strip target", lang }, ...choices),
    element("p", { class: "strip source", lang }, ...words),
    said,
  );
}

const shown = (token) => (Object.hasOwn(MARKS, token) ? MARKS[token] : token);
const percent = (weight) => `${Math.round(weight * 100)}%`;

function mean(weights) {
  return weights[0].map((_, at) => weights.reduce((sum, row) => sum + row[at], 0) / weights.length);
}
