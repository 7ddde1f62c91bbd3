// The modes of asking: from either line, from a theme, from a name, or a pair of one's own to look at.

import { button, element, fillChoices, partsOf } from "../../page/elements.js";
import { isBusy } from "../../page/feedback.js";
import { onLanguage } from "../../page/language.js";
import { details, isKnown, offered, onModels } from "../../page/models.js";
import { answeredCouplets, composedCouplets, ownCouplet } from "./couplets.js";
import { word } from "./words.js";

const part = partsOf("couplet");
const USUAL_LENGTH = 7;
const COUNT = 5;
const MOST_ANSWERS = 10; // as a server allows
const composer = () => offered("/v1/compose") ?? {};
const canCompose = () => composer().composes === true;

/** Of each mode: the line that it answers, its words, its examples, whether the server has it, the fields that it needs, what it asks
 * and how the answer is read. */
const MODES = {
  name: {
    words: { ask: "compose", doing: "composing", done: "composed" },
    isInParts: true,
    examples: ["李明", "春华", "雨桐", "文山"],
    isOffered: canCompose,
    needs: ["name"],
    request: () => ["v1/compose", wanted({ name: written("name"), place: Number(part("place").value) })],
    read: (answer) => composedCouplets(answer).map((couplet) => ({ ...couplet, theme: written("theme") })),
  },
  first: {
    given: "first",
    words: { ask: "answer", doing: "answering", done: "answered" },
    examples: ["晚风摇树树还挺", "海内存知己", "春风又绿江南岸", "书山有路勤为径", "国泰民安，万家喜庆"],
    isOffered: () => true,
    needs: ["first"],
    request: () => ["v1/couplet", others({ first: written("first") })],
    read: (answer) => notSeen(answeredCouplets(answer, "first")),
  },
  second: {
    given: "second",
    words: { ask: "answerSecond", doing: "answering", done: "answeredSecond" },
    examples: ["天涯若比邻", "学海无涯苦作舟", "万紫千红总是春", "明月何时照我还"],
    isOffered: () => details("couplet").reverse === true,
    needs: ["second"],
    request: () => ["v1/couplet", others({ second: written("second") })],
    read: (answer) => notSeen(answeredCouplets(answer, "second")),
  },
  theme: {
    words: { ask: "compose", doing: "composing", done: "composed" },
    isInParts: true,
    examples: ["春节", "婚庆", "书房", "茶", "医院", "山水"],
    isOffered: canCompose,
    needs: [],
    request: () => ["v1/compose", wanted()],
    read: (answer) => composedCouplets(answer).map((couplet) => ({ ...couplet, theme: written("theme") })),
  },
  own: {
    words: { ask: "check", doing: "checking", done: "checked" },
    examples: [],
    isOffered: () => offered("/v1/form") !== null,
    needs: ["first", "second"],
    request: () => ["v1/form", { first: written("first"), second: written("second") }],
    read: (judged, { first, second }) => [{ ...ownCouplet(squeezed(first), squeezed(second)), ...judged }],
  },
};
const written = (field) => part(field).value.trim();
const squeezed = (line) => line.replace(/\s/gu, "");
const FIELDS = ["first", "second", "name", "theme", "shape", "place"];
let mode = "name"; // what friends like to see; without a model for it, the first that there is
let before = ""; // what was asked for last
let chosen = {}; // in the lists of choices, before those are filled
const seen = new Set(); // the answers to a line that is asked for again

/** The mode that is chosen, with its words, `needs`, `request()` and `read(answer, body)`. */
export const chosenMode = () => MODES[mode];

/** The field of the chosen mode that is to be filled and is not; undefined where all are. */
export const emptyField = () => MODES[mode].needs.find((field) => written(field) === "");

/** The lines that can be written in the chosen mode. */
export function typedLines() {
  const sides = { first: ["first"], second: ["second"], own: ["first", "second"] }[mode] ?? [];
  return Object.fromEntries(sides.map((side) => [side, written(side)]));
}

/** What stands in the form, and how to write it there again. */
export const typed = () => ({ mode, ...Object.fromEntries(FIELDS.map((field) => [field, chosen[field] ?? part(field).value])) });
export function typeAgain({ mode: typedMode, first, second, name, theme, ...choices }) {
  mode = Object.hasOwn(MODES, typedMode) ? typedMode : mode;
  chosen = choices;
  for (const [field, value] of Object.entries({ first, second, name, theme })) part(field).value = value;
}

/**
 * Connect the modes.
 * @param {() => void} redraw called when a mode is chosen
 * @param {() => void} ask called when an example is taken
 */
export function startModes(redraw, ask) {
  part("ways").addEventListener("change", (event) => {
    mode = event.target.value;
    draw();
    redraw();
  });
  part("shape").addEventListener("change", drawPlaces);
  function draw() {
    drawModes();
    drawChoices();
    drawExamples((example) => {
      if (isBusy(part("ask"))) return;
      part(mode).value = example;
      redraw();
      ask();
    });
  }
  onLanguage(draw);
  onModels(() => {
    if (!MODES[mode].isOffered()) mode = "first";
    draw();
    redraw();
  });
  draw();
}

/** Choose a way to ask with a line that is known. */
export function takeLine(side, line) {
  part(side).value = line;
  part("ways").querySelector(`[value="${side}"]`).click();
}

/** Write a pair into the fields, as if it had been asked for. */
export function showPair(first, second) {
  part("first").value = first;
  part("second").value = second;
}

/** Have somebody answer a 上联; without the server's judgement it is answered by the model. */
export function challenge(first) {
  showPair(first, "");
  const chosen = MODES.own.isOffered() ? "own" : "first";
  part("ways").querySelector(`[value="${chosen}"]`).click();
  part(chosen === "own" ? "second" : "ask").focus({ preventScroll: true });
}

/** What the couplets are about, where somebody has said it. */
export const theme = () => (["theme", "name"].includes(mode) ? written("theme") : "");

function drawModes() {
  const choices = [...part("ways").querySelectorAll("label")];
  for (const choice of choices) {
    const [field] = choice.children;
    field.checked = field.value === mode;
    choice.hidden = isKnown() && !MODES[field.value].isOffered();
  }
  part("ways").hidden = choices.filter((choice) => !choice.hidden).length < 2;
  for (const place of part("form").querySelectorAll("[data-ways]")) {
    place.hidden = !place.dataset.ways.split(" ").includes(mode);
  }
  part("ask").textContent = word(MODES[mode].words.ask);
}

function drawChoices() {
  const { patterns = [], themes = [] } = composer();
  const shapes = patterns.map((shape) => [shape, word("shapeOf", { shape })]);
  fillChoice("shape", [["", word("anyShape")], ...shapes]);
  part("themes").replaceChildren(...themes.map((value) => element("option", { value })));
  drawPlaces();
}

function drawPlaces() {
  const length = part("shape").value.split("+").reduce((sum, clause) => sum + Number(clause), 0) || USUAL_LENGTH;
  const label = (place) => word({ 1: "placeFirst", [length]: "placeLast" }[place] ?? "placeAt", { place });
  fillChoice("place", Array.from({ length }, (_, at) => [String(at + 1), label(at + 1)]));
}

function drawExamples(take) {
  const { examples } = MODES[mode];
  part("examples").replaceChildren(...examples.map((one) => button(one, { class: "example" }, () => take(one))));
}

function fillChoice(name, options) {
  fillChoices(part(name), options, chosen[name]);
  if (isKnown()) delete chosen[name];
}

/** What whole couplets are to be; asked for once more, they are to be others. */
function wanted(named = {}) {
  const request = { ...named, count: COUNT };
  const [theme, pattern] = [written("theme"), part("shape").value];
  if (theme !== "") request.theme = theme;
  if (pattern !== "") request.pattern = pattern;
  return isAgain(request) ? { ...request, seed: Math.floor(Math.random() * 2 ** 32) } : request;
}

/** Whether the same is asked for once more, so that something else is wanted. */
function isAgain(request) {
  const asked = JSON.stringify(request);
  const isSame = asked === before;
  before = asked;
  return isSame;
}

/** A request for answers to a line; once more, it has enough for others. */
function others(request) {
  if (isAgain(request)) return { ...request, n_best: MOST_ANSWERS };
  seen.clear();
  return request;
}

/** Those of the answers that were not yet shown; when all were, the first again. */
function notSeen(couplets) {
  const name = ({ first, second }) => `${first}/${second}`;
  let fresh = couplets.filter((couplet) => !seen.has(name(couplet)));
  if (fresh.length === 0) {
    seen.clear();
    fresh = couplets;
  }
  const shown = fresh.slice(0, COUNT);
  shown.forEach((couplet) => seen.add(name(couplet)));
  return shown;
}
