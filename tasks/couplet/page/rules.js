// The switches of the rules of form.

import { element } from "../../page/elements.js";
import { onLanguage } from "../../page/language.js";
import { details, onModels } from "../../page/models.js";
import { word } from "./words.js";

const SWITCHES = [
  "same_length", "copy_punctuation", "mirror_repeats", "no_shared_character", "final_tone", "tone_weight",
];
const boxes = new Map();

/** Put the switches into a fieldset, set as the server's rules are. */
export function startRules(fieldset) {
  for (const name of SWITCHES) {
    const box = element("input", { type: "checkbox", name });
    box.checked = true;
    const label = element("span", {}, word(name));
    onLanguage(() => {
      label.textContent = word(name);
    });
    boxes.set(name, box);
    fieldset.append(element("label", { class: "switch" }, box, label));
  }
  onModels(() => {
    for (const [name, box] of boxes) box.checked = isOn(name);
  });
}

/** The rules that differ from the server's, as the API takes them. */
export function changedRules() {
  const changed = {};
  for (const [name, box] of boxes) {
    if (box.checked !== isOn(name)) changed[name] = name === "tone_weight" ? Number(box.checked) : box.checked;
  }
  const { enabled = true } = details("couplet").rules ?? {};
  if (!enabled && Object.keys(changed).length > 0) {
    // The server applies no rule; to switch one on, all must be sent.
    changed.enabled = true;
    for (const [name, box] of boxes) changed[name] = name === "tone_weight" ? Number(box.checked) : box.checked;
  }
  return changed;
}

function isOn(name) {
  const { enabled = true, [name]: value = true } = details("couplet").rules ?? {};
  return enabled && Boolean(value);
}
