// The couplet as it hangs beside a door: 上联 on the right, 下联 on the left, on red paper.

import { button, element, setVariable } from "../../page/elements.js";
import { word } from "./words.js";

export const ROWS = 12; // characters of a column before a second one begins
const EMPTY = 7; // rows of paper without a line
const HANZI = /\p{Script=Han}/u;

/**
 * Draw a couplet.
 * @param {HTMLElement} figure filled anew
 * @param {string} first 上联
 * @param {string} second 下联
 * @param {Set<number>} locks places of the 下联 that are locked
 * @param {(place: number) => boolean} toggle locks or unlocks a place and tells whether it is locked now
 */
export function hangPair(figure, first, second, locks, toggle) {
  const focused = figure.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
  const longest = Math.max([...first].length, [...second].length);
  const columns = Math.max(1, Math.ceil(longest / ROWS));
  setVariable(figure, "--rows", longest === 0 ? EMPTY : Math.max(4, Math.ceil(longest / columns)));
  setVariable(figure, "--columns", columns);
  figure.dataset.width = columns === 1 ? "narrow" : columns === 2 ? "double" : "wide";
  figure.dataset.length = longest <= 7 ? "short" : "long";
  figure.setAttribute("aria-label", word("pairLabel"));
  const right = [...first].map((character) => element("span", { class: "character" }, character));
  const left = [...second].map((character, place) => writtenCharacter(character, place, locks, toggle));
  figure.replaceChildren(
    scroll("second", left),
    element(
      "div",
      { class: "door", "aria-hidden": "true" },
      element("span", { class: "leaf" }),
      element("span", { class: "leaf" }),
      element("span", { class: "luck", lang: "zh-Hans" }, element("span", {}, "福")),
    ),
    scroll("first", right),
  );
  if (focused !== undefined) figure.querySelector(`[data-place="${focused}"]`)?.focus();
}

function scroll(side, characters) {
  return element("div", { class: `scroll ${side}` }, element("p", { class: "line", lang: "zh-Hans" }, ...characters));
}

function writtenCharacter(character, place, locks, toggle) {
  if (!HANZI.test(character)) return element("span", { class: "character" }, character);
  const label = (isLocked) => word(isLocked ? "unlockCharacter" : "lockCharacter", { place: place + 1, character });
  const made = button(
    character,
    { class: "character", "data-place": place, "aria-pressed": locks.has(place), "aria-label": label(locks.has(place)) },
    () => made.setAttribute("aria-label", label(toggle(place))),
  );
  made.setAttribute("aria-pressed", String(locks.has(place)));
  made.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const others = [...made.parentElement.querySelectorAll("button")];
    const next = step && others[others.indexOf(made) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  return made;
}
