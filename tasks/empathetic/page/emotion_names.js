// The emotions that a model knows, with the names that its card brings.

import { language } from "../../page/language.js";
import { details } from "../../page/models.js";

/** A label's name in the language of the page; a label that the model does not name stands for itself. */
export function emotionName(label, spoken) {
  const chinese = details("empathetic", spoken).chinese_names ?? {};
  return language() === "zh" && Object.hasOwn(chinese, label) ? chinese[label] : label;
}

/** All labels with their names, in the order of the model. */
export const emotionNames = (spoken) =>
  (details("empathetic", spoken).emotions ?? []).map((label) => [label, emotionName(label, spoken)]);
