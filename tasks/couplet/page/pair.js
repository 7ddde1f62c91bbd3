// The couplet as it hangs beside a door: 上联 on the right, 下联 on the left, the 横批 above; marks are not written.

import { button, element, setVariable } from "../../page/elements.js";
import { FONTS, HAN, unmarked } from "../../page/brush.js";
import { word } from "./words.js";
import { columnsOf, GROUNDS, inkColour } from "./writing.js";

const EMPTY = 7; // rows of paper without a line
const LABELS = { first: "firstLine", second: "secondLine" };
const BLANK = "　　　　"; // a 横批 that is not there yet; its place is kept, so that nothing moves

/**
 * What can be done with the characters of the pair.
 * @typedef {object} Hands
 * @property {boolean} isEditing whether characters are written over; else they are locked
 * @property {?string} lockable the line whose characters can be locked: "first" or "second"
 * @property {Set<number>} locks places of that line that are locked
 * @property {(place: number) => boolean} toggle locks or unlocks a place and tells whether it is locked now
 * @property {(side: string, place: number, characters: string[]) => void} write replaces characters from a place on
 */

/**
 * Draw a couplet.
 * @param {HTMLElement} figure filled anew
 * @param {{first: string, second: string, scroll: string}} couplet
 * @param {{ground: string, ink: string, font: string}} look
 * @param {?Hands} hands null where nothing can be done
 */
export function hangPair(figure, { first, second, scroll }, { ground, ink, font }, hands = null) {
  const { side, place } = figure.contains(document.activeElement) ? document.activeElement.dataset : {};
  const { longest, columns, rows } = columnsOf(first, second);
  const { colours, edge, flecks, luck, wall: [wall, wood] } = GROUNDS[ground];
  const marks = { edge: edge ?? "transparent", flecks: flecks ?? "transparent" };
  const style = { wall, wood, paper: colours[ink], ink: inkColour(ink), ...marks };
  const grid = { rows: longest === 0 ? EMPTY : Math.max(4, rows), columns, hand: FONTS[font] };
  for (const [name, value] of Object.entries({ ...style, ...grid })) setVariable(figure, `--${name}`, value);
  Object.assign(figure.dataset, { ground, ink });
  figure.dataset.width = columns === 1 ? "narrow" : columns === 2 ? "double" : "wide";
  figure.dataset.length = longest <= 7 ? "short" : "long";
  figure.setAttribute("aria-label", word("pairLabel"));
  const leaves = [element("span", { class: "leaf" }), element("span", { class: "leaf" })];
  const door = element("div", { class: "door", "aria-hidden": "true" }, ...leaves);
  if (luck !== null) door.append(element("span", { class: "luck", lang: "zh-Hans" }, element("span", {}, luck)));
  // In the order in which they are read; the style puts the 上联 on the right.
  const papers = [paper("first", first, hands), door, paper("second", second, hands)];
  figure.replaceChildren(element("div", { class: "sides" }, ...papers));
  hangScroll(figure, scroll);
  if (place !== undefined) figure.querySelector(`[data-side="${side}"][data-place="${place}"]`)?.focus();
}

/** Hang another 横批 above a drawn couplet, or none. */
export function hangScroll(figure, scroll) {
  figure.querySelector(".scroll")?.remove();
  const characters = [...(scroll || BLANK)].map((character) => element("span", {}, character));
  const isBlank = scroll === "";
  figure.append(element("p", { class: isBlank ? "paper scroll blank" : "paper scroll", lang: "zh-Hans" }, ...characters));
}

function paper(side, line, hands) {
  const characters = [...line].map((character, place) => {
    if (unmarked(character).length === 0) return "";
    if (hands?.isEditing) return writableCharacter(character, side, place, hands);
    if (hands?.lockable === side && HAN.test(character)) return lockableCharacter(character, side, place, hands);
    return element("span", { class: "character" }, character);
  });
  const name = element("span", { class: "unseen" }, `${word(LABELS[side])}${word("colon")}`);
  const written = element("p", { class: "line", lang: "zh-Hans" }, ...characters.filter(Boolean));
  return element("div", { class: `paper ${side}` }, name, written);
}

function lockableCharacter(character, side, place, { locks, toggle }) {
  const label = (isLocked) => word(isLocked ? "unlockCharacter" : "lockCharacter", { place: place + 1, character });
  const state = { "aria-pressed": String(locks.has(place)), "aria-label": label(locks.has(place)) };
  const made = button(character, { class: "character", "data-side": side, "data-place": place, ...state }, () =>
    made.setAttribute("aria-label", label(toggle(place))),
  );
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

/** A field for one character; what is written into it may be several, which go on down the line. */
function writableCharacter(character, side, place, { write }) {
  const label = word("writeCharacter", { line: word(LABELS[side]), place: place + 1, character });
  const field = element("input", {
    class: "character",
    "data-side": side,
    "data-place": place,
    "aria-label": label,
    autocomplete: "off",
    spellcheck: "false",
  });
  let own = character;
  field.value = own;
  const fields = () => [...field.parentElement.children];
  const take = () => {
    const characters = unmarked(field.value);
    if (characters.length === 0) return; // what comes instead is still to be written
    write(side, place, characters);
    const others = fields().slice(fields().indexOf(field));
    characters.forEach((one, at) => others[at]?.dispatchEvent(new CustomEvent("written", { detail: one })));
    const next = others[characters.length] ?? field;
    next.focus();
    next.select();
  };
  field.addEventListener("written", ({ detail }) => {
    own = detail;
    field.value = own;
  });
  field.addEventListener("input", (event) => {
    if (!event.isComposing) take();
  });
  field.addEventListener("compositionend", take);
  field.addEventListener("focus", () => field.select());
  field.addEventListener("click", () => field.select());
  field.addEventListener("blur", () => (field.value = own));
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const other = field.closest(".sides").querySelector(`input[data-side]:not([data-side="${side}"])[data-place="${place}"]`);
    const next = {
      ArrowDown: field.nextElementSibling,
      ArrowUp: field.previousElementSibling,
      ArrowLeft: side === "first" ? other : null,
      ArrowRight: side === "second" ? other : null,
      Home: fields()[0],
      End: fields().at(-1),
    };
    if (!(event.key in next)) return;
    event.preventDefault(); // the caret stays over the whole character
    next[event.key]?.focus();
  });
  return field;
}
