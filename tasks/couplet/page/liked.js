// The couplets that somebody liked, kept in this browser.

import { button, element, partsOf } from "../../page/elements.js";
import { saveFile } from "../../page/handing_over.js";
import { Sentence } from "../../page/feedback.js";
import { onLanguage } from "../../page/language.js";
import { word } from "./words.js";

const part = partsOf("couplet");
const KEY = "paddle_dialog.couplet.liked";
const MOST = 300;
let kept = stored();
let error, hang, changed;

/**
 * Connect the list.
 * @param {(couplet: {first: string, second: string, scroll: string}) => void} show hangs a couplet of the list
 * @param {() => void} redraw called when the list has changed
 */
export function startLiked(show, redraw) {
  [hang, changed] = [show, redraw];
  error = new Sentence(part("liked-error"), word);
  part("liked-save").addEventListener("click", () =>
    saveFile(new Blob([kept.map(asText).join("\n\n"), "\n"], { type: "text/plain" }), `${word("liked")}.txt`),
  );
  window.addEventListener("storage", ({ key }) => {
    if (key !== KEY && key !== null) return; // null: all was cleared
    kept = stored();
    draw();
  });
  onLanguage(draw);
  draw();
}

/** Whether a couplet is in the list, whatever its 横批. */
export const isLiked = (couplet) => placeOf(couplet) >= 0;

/** Put a couplet into the list, or take it out. */
export function toggleLiked(couplet) {
  const place = placeOf(couplet);
  if (place >= 0) kept.splice(place, 1);
  else kept = [{ first: couplet.first, second: couplet.second, scroll: couplet.scroll }, ...kept].slice(0, MOST);
  save();
  draw();
}

/** A couplet as lines of text. */
export function asText({ first, second, scroll }) {
  return scroll === "" ? `${first}\n${second}` : `${first}\n${second}\n横批：${scroll}`;
}

const placeOf = ({ first, second }) => kept.findIndex((one) => one.first === first && one.second === second);

function save() {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
    error.tell(null);
  } catch {
    error.tell("likedUnsaved"); // forbidden here, or full
  }
}

/** What the browser has kept, without entries that are none. */
function stored() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    const isText = (text) => typeof text === "string";
    return found.filter((one) => [one?.first, one?.second, one?.scroll].every(isText)).slice(0, MOST);
  } catch {
    return [];
  }
}

function draw() {
  const rows = kept.map((couplet) => {
    const { first, second, scroll } = couplet;
    const again = button("", { class: "liked-text", lang: "zh-Hans", title: word("hangAgain") }, () => hang({ ...couplet }));
    again.append(...[first, second, scroll].filter(Boolean).map((text) => element("span", {}, text)));
    const label = word("removeLiked", { first });
    return element("li", {}, again, button("×", { class: "remove", "aria-label": label, title: label }, () => remove(couplet)));
  });
  part("liked-list").replaceChildren(...rows);
  part("liked").hidden = kept.length === 0 && part("liked-error").hidden;
  changed();
}

function remove(couplet) {
  const place = placeOf(couplet);
  toggleLiked(couplet);
  const left = part("liked-list").querySelectorAll(".remove");
  (left[Math.min(place, left.length - 1)] ?? part("ask")).focus();
}
