// The 横批: proposed by the server, taken down by a second click, or one's own.

import { ask } from "../../page/api.js";
import { button, partsOf } from "../../page/elements.js";
import { Sentence } from "../../page/feedback.js";
import { offered } from "../../page/models.js";
import { word } from "./words.js";

const part = partsOf("couplet");
const LONGEST = 8; // characters of one's own
const COUNT = 5;
const asked = new WeakSet(); // couplets whose proposals are on their way
let error, redraw, inScript, shown;

/** Connect the choice; `changed` is called when another 横批 hangs, `turned` is a text as it is to be read. */
export function startScrolls(changed, turned) {
  [redraw, inScript] = [changed, turned];
  error = new Sentence(part("scroll-error"), word);
  const take = () => {
    shown.ownScroll = [...part("scroll").value.replace(/\s/gu, "")].slice(0, LONGEST).join("");
    redraw();
  };
  part("scroll").addEventListener("input", ({ isComposing }) => isComposing || take());
  part("scroll").addEventListener("compositionend", take);
}

/** The 横批 that hangs above a couplet; it may be empty. */
export const scrollOf = ({ ownScroll, scroll }) => ownScroll || (scroll ?? "");

/** Show what there is to choose from above a couplet, and ask the server for it where that is not known. */
export function drawScrolls(couplet) {
  if (shown !== couplet) part("scroll").value = couplet.ownScroll ?? ""; // each has its own
  shown = couplet;
  const choices = couplet.scrolls ?? (couplet.scroll ? [couplet.scroll] : []);
  const focused = [...part("scrolls").children].indexOf(document.activeElement);
  const made = choices.map((text) => {
    const isHanging = !couplet.ownScroll && text === couplet.scroll;
    return button(inScript(text), { class: "example", "aria-pressed": String(isHanging) }, () => {
      part("scroll").value = couplet.ownScroll = "";
      couplet.scroll = isHanging ? "" : text;
      redraw();
    });
  });
  part("scrolls").replaceChildren(...made);
  made[focused]?.focus();
  if (couplet.scrolls === undefined && offered("/v1/scroll") !== null && !asked.has(couplet)) propose(couplet);
}

async function propose(couplet) {
  const { first, second } = couplet;
  asked.add(couplet);
  error.tell(null);
  try {
    const { scrolls } = await ask("v1/scroll", { first, second, n_best: COUNT });
    couplet.scrolls = scrolls.map(({ text }) => text);
    couplet.scroll ??= couplet.scrolls[0] ?? "";
    redraw();
  } catch (failure) {
    error.tellError(failure);
  }
}
