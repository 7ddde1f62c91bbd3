// The language of the page: chosen by the browser's, changed by a switch, remembered.

import { WORDS } from "./words.js";

const KEY = "paddle_dialog.language";
const listeners = [];
let current = remembered() ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

/** "zh" or "en". */
export const language = () => current;

/** A text of the page; {names} in it are filled from `values`. */
export function word(name, values = {}) {
  return WORDS[current][name].replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole));
}

/** The text for a name that the server gives, or the name itself where the page has none for it. */
export const wordOrName = (name) => (Object.hasOwn(WORDS[current], name) ? word(name) : name);

/** Calls `redraw` whenever the language has changed, for texts that code has put into the page. */
export function onLanguage(redraw) {
  listeners.push(redraw);
}

/** Fills the page's own texts and connects the switch. */
export function startLanguage() {
  for (const choice of document.querySelectorAll("[data-language]")) {
    choice.addEventListener("click", () => choose(choice.dataset.language));
  }
  fill();
}

function choose(chosen) {
  current = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // Storage is forbidden here: the choice holds until the page is closed.
  }
  fill();
  listeners.forEach((redraw) => redraw());
}

function fill() {
  document.documentElement.lang = current === "zh" ? "zh-Hans" : "en";
  document.title = word("title");
  for (const place of document.querySelectorAll("[data-text]")) place.textContent = word(place.dataset.text);
  for (const place of document.querySelectorAll("[data-placeholder]")) {
    place.placeholder = word(place.dataset.placeholder);
  }
  for (const place of document.querySelectorAll("[data-label]")) {
    place.setAttribute("aria-label", word(place.dataset.label));
  }
  for (const choice of document.querySelectorAll("[data-language]")) {
    choice.setAttribute("aria-pressed", String(choice.dataset.language === current));
  }
}

function remembered() {
  try {
    const stored = localStorage.getItem(KEY);
    return Object.hasOwn(WORDS, stored ?? "") ? stored : null;
  } catch {
    return null;
  }
}
