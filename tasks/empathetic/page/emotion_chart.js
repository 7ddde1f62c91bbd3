// The emotions that a model knows: by name, felt in a turn as bars, and as a choice of another.

import { button, element, setVariable } from "../../page/elements.js";
import { language } from "../../page/language.js";
import { details } from "../../page/models.js";
import { word } from "./words.js";

/** A label's name in the language of the page; a label that the model does not name stands for itself. */
export function emotionName(label, spoken) {
  const chinese = details("empathetic", spoken).chinese_names ?? {};
  return language() === "zh" && Object.hasOwn(chinese, label) ? chinese[label] : label;
}

/**
 * A bar for each of the likeliest emotions.
 * @param {Object<string, number>} emotions label → probability
 * @param {(label: string) => string} nameOf a label
 * @param {string} chosen the label the reply was made with
 * @param {?(label: string) => void} choose asks for the reply with another emotion; null draws bars that cannot be clicked
 */
export function emotionChart(emotions, nameOf, chosen, choose) {
  const rows = Object.entries(emotions)
    .sort(([, one], [, other]) => other - one)
    .map(([label, probability]) => element("li", {}, row([label, nameOf(label)], probability, label === chosen, choose)));
  return element("ul", { class: "emotions", "aria-label": word("felt") }, ...rows);
}

/** A choice of all emotions of the model of a language, with "as it felt itself" on top. */
export function emotionChoice(spoken, given, choose) {
  const { emotions: known = [] } = details("empathetic", spoken);
  const option = (value, label) => {
    const made = element("option", { value }, label);
    made.selected = (given ?? "") === value;
    return made;
  };
  const select = element(
    "select",
    { class: "emotion-choice", "aria-label": word("otherEmotion"), "data-focus": "emotion-choice" },
    option("", given === null ? word("otherEmotion") : word("asFelt")),
    ...known.map((label) => option(label, [...new Set([emotionName(label, spoken), label])].join(" "))),
  );
  select.addEventListener("change", () => choose(select.value || null));
  return select;
}

function row([label, name], probability, isChosen, choose) {
  const percent = `${Math.round(probability * 100)}%`;
  const bar = setVariable(element("span", { class: "bar", "aria-hidden": "true" }), "--share", probability);
  const parts = [element("span", { class: "emotion-name" }, name), bar, element("span", { class: "percent" }, percent)];
  const named = isChosen ? "emotion chosen" : "emotion";
  if (choose === null) return element("span", { class: named }, ...parts);
  const made = button("", { class: named, "aria-pressed": String(isChosen), "data-focus": `emotion-${label}` }, () =>
    choose(label),
  );
  made.title = word("chooseEmotion", { emotion: name });
  made.append(...parts);
  return made;
}
