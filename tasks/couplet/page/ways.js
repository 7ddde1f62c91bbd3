// The ways to a couplet: from either line, from a theme, from a name, or a pair of one's own to look at.

import { button, element, partsOf } from "../../page/elements.js";
import { isBusy } from "../../page/feedback.js";
import { onLanguage } from "../../page/language.js";
import { details, offered, onModels } from "../../page/models.js";
import { answeredCouplets, composedCouplets, ownCouplet } from "./couplets.js";
import { changedRules } from "./rules.js";
import { word } from "./words.js";

const part = partsOf("couplet");
const HANZI = /\p{Script=Han}/u;
const USUAL_LENGTH = 7;
const COUNTS = [1, 3, 5, 8];
const USUAL_COUNT = 5;
const composer = () => offered("/v1/compose") ?? {};
const canCompose = () => composer().composes === true;

/** Of each way: the line that it answers, its words, its examples, whether the server has it, what it asks and how the answer is read. */
const WAYS = {
  name: {
    words: { label: "wayName", ask: "compose", doing: "composing", done: "composed" },
    examples: ["李明", "春华", "雨桐", "文山"],
    isOffered: canCompose,
    fault: () => (HANZI.test(written("name")) ? null : { field: "name", word: written("name") === "" ? "emptyName" : "noName" }),
    request: () => ["v1/compose", wanted({ name: written("name"), place: Number(part("place").value) })],
    read: composedCouplets,
  },
  first: {
    given: "first",
    words: { label: "wayFirst", ask: "answer", doing: "answering", done: "answered" },
    examples: ["晚风摇树树还挺", "海内存知己", "春风又绿江南岸", "书山有路勤为径", "国泰民安，万家喜庆"],
    isOffered: () => true,
    fault: () => lineFault("first"),
    request: () => ["v1/couplet", { first: written("first"), ...rules() }],
    read: (answer) => answeredCouplets(answer, "first"),
  },
  second: {
    given: "second",
    words: { label: "waySecond", ask: "answerSecond", doing: "answering", done: "answeredSecond" },
    examples: ["天涯若比邻", "学海无涯苦作舟", "万紫千红总是春", "明月何时照我还"],
    isOffered: () => details("couplet").reverse === true,
    fault: () => lineFault("second"),
    request: () => ["v1/couplet", { second: written("second"), ...rules() }],
    read: (answer) => answeredCouplets(answer, "second"),
  },
  theme: {
    words: { label: "wayTheme", ask: "compose", doing: "composing", done: "composed" },
    examples: ["春节", "婚庆", "书房", "茶", "医院", "山水"],
    isOffered: canCompose,
    fault: () => null,
    request: () => ["v1/compose", wanted()],
    read: composedCouplets,
  },
  own: {
    words: { label: "wayOwn", ask: "check", doing: "checking", done: "checked" },
    examples: [],
    isOffered: () => offered("/v1/form") !== null,
    fault: () => lineFault("first") ?? lineFault("second"),
    request: () => ["v1/form", { first: written("first"), second: written("second") }],
    read: (told, { first, second }) => [{ ...ownCouplet(squeezed(first), squeezed(second)), ...told }],
  },
};
const written = (field) => part(field).value.trim();
const squeezed = (line) => line.replace(/\s/gu, "");
let way = "name"; // what friends like to see; without a model for it, the first that there is
let before = ""; // what whole couplets were asked for last

/** The way that is chosen, with its words, `fault()`, `request()` and `read(answer, body)`. */
export const chosenWay = () => WAYS[way];

/** The lines that can be written in the chosen way, as they stand there. */
export function typedLines() {
  const sides = { first: ["first"], second: ["second"], own: ["first", "second"] }[way] ?? [];
  return Object.fromEntries(sides.map((side) => [side, written(side)]));
}

/**
 * Connect the ways.
 * @param {() => void} redraw called when a way is chosen
 * @param {() => void} ask called when an example is taken
 */
export function startWays(redraw, ask) {
  for (const name of Object.keys(WAYS)) {
    const choice = element("input", { type: "radio", name: "couplet-way", value: name });
    choice.addEventListener("change", () => {
      way = name;
      draw();
      redraw();
    });
    part("ways").append(element("label", { class: "way" }, choice, element("span")));
  }
  part("shape").addEventListener("change", drawPlaces);
  function draw() {
    drawWays();
    drawChoices();
    drawExamples((example) => {
      if (isBusy(part("ask"))) return;
      part(way).value = example;
      redraw();
      ask();
    });
  }
  onLanguage(draw);
  onModels(() => {
    if (!WAYS[way].isOffered()) way = "first";
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
  const chosen = WAYS.own.isOffered() ? "own" : "first";
  part("ways").querySelector(`[value="${chosen}"]`).click();
  part(chosen === "own" ? "second" : "ask").focus({ preventScroll: true });
}

/** What the couplets are about, where somebody has said it. */
export const theme = () => (["theme", "name"].includes(way) ? written("theme") : "");

function drawWays() {
  const choices = [...part("ways").querySelectorAll("label")];
  for (const choice of choices) {
    const [field, told] = choice.children;
    field.checked = field.value === way;
    told.textContent = word(WAYS[field.value].words.label);
    choice.hidden = !WAYS[field.value].isOffered();
  }
  part("ways").hidden = choices.filter((choice) => !choice.hidden).length < 2;
  for (const place of part("form").querySelectorAll("[data-ways]")) {
    place.hidden = !place.dataset.ways.split(" ").includes(way);
  }
  part("ask").textContent = word(WAYS[way].words.ask);
}

function drawChoices() {
  const { patterns = [], themes = [] } = composer();
  const shapes = patterns.map((shape) => [shape, word("shapeOf", { shape })]);
  fillChoice("shape", [["", word("anyShape")], ...shapes], "");
  part("themes").replaceChildren(...themes.map((value) => element("option", { value })));
  fillChoice("count", COUNTS.map((count) => [String(count), String(count)]), String(USUAL_COUNT));
  drawPlaces();
}

function drawPlaces() {
  const length = part("shape").value.split("+").reduce((sum, clause) => sum + Number(clause), 0) || USUAL_LENGTH;
  const label = (place) => word({ 1: "placeFirst", [length]: "placeLast" }[place] ?? "placeAt", { place });
  fillChoice("place", Array.from({ length }, (_, at) => [String(at + 1), label(at + 1)]), "1");
}

function drawExamples(take) {
  const { examples } = WAYS[way];
  part("examples").replaceChildren(...examples.map((one) => button(one, { class: "example" }, () => take(one))));
}

function fillChoice(name, options, usual) {
  const field = part(name);
  const before = field.value || usual;
  field.replaceChildren(...options.map(([value, label]) => element("option", { value }, label)));
  field.value = options.some(([value]) => value === before) ? before : usual;
}

function rules() {
  const rules = changedRules();
  return Object.keys(rules).length > 0 ? { rules } : {};
}

/** What whole couplets are to be; asked for once more, they are to be others. */
function wanted(named = {}) {
  const request = { ...named, count: Number(part("count").value) };
  const [theme, pattern] = [written("theme"), part("shape").value];
  if (theme !== "") request.theme = theme;
  if (pattern !== "") request.pattern = pattern;
  const asked = JSON.stringify(request);
  if (asked === before) request.seed = Math.floor(Math.random() * 2 ** 32);
  before = asked;
  return request;
}

function lineFault(side) {
  const line = written(side);
  const length = [...squeezed(line)].length;
  const limit = details("couplet").longest_line ?? Infinity;
  const names = side === "first" ? ["emptyFirst", "noHanzi", "tooLong"] : ["emptySecond", "noHanziSecond", "tooLongSecond"];
  const faults = [line === "", !HANZI.test(line), length > limit];
  const found = faults.indexOf(true);
  return found < 0 ? null : { field: side, word: names[found], values: { length, limit } };
}
