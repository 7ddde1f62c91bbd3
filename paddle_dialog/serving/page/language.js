// The language of the page: chosen by the browser's, changed by a switch, remembered.

import { recall, remember } from "./memory.js";
import { WORDS } from "./words.js";

const KEY = "paddle_dialog.language";
const listeners = [];
const ownWords = new Map(); // of each panel that is loaded
let current = recall("localStorage", KEY) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

/** "zh" or "en". */
export const language = () => current;

/**
 * The words of a tab as a function of a name and of values for the {names} in the text.
 * @param {Object<string, [string, string]>} own each in Chinese and in English
 * @returns {(name: string, values?: object) => string} the tab's own word, else the page's, else the name itself
 */
export function vocabulary(own) {
  return (name, values = {}) => {
    const pair = [own, WORDS].find((words) => Object.hasOwn(words, name))?.[name];
    const text = pair?.[current === "zh" ? 0 : 1] ?? name;
    return text.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole));
  };
}

/** A text of the page. */
export const word = vocabulary({});

/** Fill the texts of a tab's panel with its own words, now and whenever the language changes. */
export function addWords(panel, own) {
  ownWords.set(panel, own);
  fill();
}

/** Call `redraw` whenever the language has changed, for texts inserted by code. */
export function onLanguage(redraw) {
  listeners.push(redraw);
}

/** Fill the page's own texts and connect the switch. */
export function startLanguage() {
  for (const choice of document.querySelectorAll("[data-language]")) {
    choice.addEventListener("click", () => choose(choice.dataset.language));
  }
  fill();
}

function choose(chosen) {
  current = chosen;
  remember("localStorage", KEY, chosen);
  fill();
  listeners.forEach((redraw) => redraw());
}

function fill() {
  document.documentElement.lang = current === "zh" ? "zh-Hans" : "en";
  fillEach("text", (place, text) => (place.textContent = text));
  fillEach("placeholder", (place, text) => (place.placeholder = text));
  fillEach("label", (place, text) => place.setAttribute("aria-label", text));
  for (const choice of document.querySelectorAll("[data-language]")) {
    choice.setAttribute("aria-pressed", String(choice.dataset.language === current));
  }
}

/** Put a word wherever an attribute such as `data-text` names one, except in panels that are not loaded. */
function fillEach(kind, put) {
  for (const place of document.querySelectorAll(`[data-${kind}]`)) {
    const panel = place.closest("[role=tabpanel]");
    const words = panel === null ? word : ownWords.get(panel);
    if (words !== undefined) put(place, words(place.dataset[kind]));
  }
}
