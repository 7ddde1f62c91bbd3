// How the couplet looks that hangs: its paper, which follows its words, ink, font and characters; its 横批; its sheets.

import { ask } from "../../page/api.js";
import { handFor } from "../../page/brush.js";
import { isTraditional, loadTraditional, traditional } from "../../page/characters.js";
import { button, fillChoices, partsOf } from "../../page/elements.js";
import { Sentence } from "../../page/feedback.js";
import { printSheets } from "../../page/keep.js";
import { onLanguage } from "../../page/language.js";
import { offered } from "../../page/models.js";
import { PAPERS, sheetsOf } from "./picture.js";
import { word } from "./words.js";
import { GROUNDS, groundFor } from "./writing.js";

const part = partsOf("couplet");
const CHOICES = {
  ground: Object.keys(GROUNDS),
  ink: ["black", "gold"],
  font: ["brush", "kai", "song"],
  script: ["plain", "older"],
};
const USUAL = { ink: "black", font: "brush", script: "plain" };
const MAX_SCROLL = 8; // characters of one's own
const SCROLLS = 5; // to choose from
const look = { ...USUAL };
let chosenGrounds = {}; // by hand, of each occasion; the next couplet of that occasion hangs on it too
let isScriptChosen = false;
const asked = new WeakSet(); // couplets whose 横批 are on their way
let hanging, error, scrollError, redraw, redrawScroll;
let shown; // the couplet whose 横批 are to choose from

/**
 * Connect the choices.
 * @param {() => ?Couplet} hung the couplet that hangs
 * @param {Sentence} sentence for what fails
 * @param {() => void} draw called when it is to look otherwise
 * @param {() => void} drawScroll called when another 横批 hangs
 */
export function startLooks(hung, sentence, draw, drawScroll) {
  [hanging, error, redraw, redrawScroll] = [hung, sentence, draw, drawScroll];
  for (const name of Object.keys(CHOICES)) part(name).addEventListener("change", () => choose(name, part(name).value));
  part("print").addEventListener("click", () => {
    const { size, sheets } = PAPERS[part("paper").value];
    printSheets(sheets(onPaper(hanging()), size, { ...lookOf(hanging()), isRed: part("red").checked }), size);
  });
  onLanguage(drawLooks);
  scrollError = new Sentence(part("scroll-error"), word);
  part("scroll").addEventListener("input", ({ isComposing }) => isComposing || takeScroll());
  part("scroll").addEventListener("compositionend", takeScroll);
}

function choose(name, value) {
  if (name !== "ground") look[name] = value;
  else if (hanging().ground === undefined) chosenGrounds[occasionOf(hanging())] = value;
  else hanging().ground = value; // it was kept or sent with a paper of its own
  if (name === "script") isScriptChosen = true;
  dressAnew();
}

/** Draw, and once more when the traditional characters are there. */
function dressAnew() {
  redraw();
  if (look.script === "older") loadTraditional().then(redraw, (failure) => error.tellError(failure));
}

/** Take the look that an address names; the paper belongs to its couplet. */
export function dress(values) {
  for (const [name, usual] of Object.entries(USUAL)) look[name] = CHOICES[name].includes(values[name]) ? values[name] : usual;
  isScriptChosen = look.script === "older";
  dressAnew();
}

/** The paper that an address names, if there is such a one. */
export const groundIn = ({ ground }) => (CHOICES.ground.includes(ground) ? ground : undefined);

/** What was chosen by hand, and how to choose it again. */
export const chosenLooks = () => ({ look, chosenGrounds, isScriptChosen });
export function chooseLooks(chosen) {
  Object.assign(look, chosen.look);
  ({ chosenGrounds, isScriptChosen } = chosen);
  if (look.script === "older") loadTraditional().then(redraw, reportError);
}

/** Write in the characters in which somebody asks, where none were chosen. */
export async function followScript(text) {
  await loadTraditional();
  const script = isTraditional(text) ? "older" : "plain";
  if (isScriptChosen || look.script === script) return;
  look.script = script;
  redraw();
}

const occasionOf = ({ theme = "", first, second }) => groundFor(theme, first + second);

/** How a couplet looks: `{ground, ink, font}`; no gold is written on white, and no font that lacks a character. */
export function lookOf(couplet) {
  const occasion = occasionOf(couplet);
  const ground = couplet.ground ?? chosenGrounds[occasion] ?? occasion;
  const ink = GROUNDS[ground].colours[look.ink] === undefined ? "black" : look.ink;
  const { first, second, scroll } = onPaper(couplet);
  return { ground, ink, font: handFor(first + second + scroll, look.font) };
}

/** The 横批 that hangs above a couplet; it may be empty. */
export const scrollOf = ({ ownScroll, scroll }) => ownScroll || (scroll ?? "");

/** A couplet in the characters that are chosen for the paper. */
const inScript = (text) => (look.script === "older" ? traditional(text) : text);
export const onPaper = (couplet) => ({ ...linesInScript(couplet), scroll: inScript(scrollOf(couplet)) });
export const linesInScript = ({ first, second }) => ({ first: inScript(first), second: inScript(second) });

/** What an address says of the look of a couplet, where that is not the usual one. */
export function dressed(couplet) {
  const { ground } = lookOf(couplet);
  const known = Object.fromEntries(Object.entries(look).filter(([name, value]) => value !== USUAL[name]));
  return ground === groundFor("", couplet.first + couplet.second) ? known : { ...known, ground };
}

/** Draw the choices of the couplet that hangs. */
export function drawLooks() {
  const couplet = hanging();
  if (couplet === undefined) return;
  const { ground, ink } = lookOf(couplet);
  const named = (name, values) => values.map((value) => [value, word(`${name}_${value}`)]);
  for (const [name, value] of Object.entries({ ...look, ground, ink })) {
    fillChoices(part(name), named(name, CHOICES[name]), value);
  }
  fillChoices(part("paper"), named("paper", Object.keys(PAPERS)));
  const isRed = GROUNDS[ground].colours.gold !== undefined;
  part("ink").hidden = part("red-choice").hidden = !isRed;
}

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
      couplet.scroll = isHanging ? "" : text; // a second click takes it down
      redrawScroll();
    });
  });
  part("scrolls").replaceChildren(...made);
  made[focused]?.focus();
  if (couplet.scrolls === undefined && offered("/v1/scroll") !== null && !asked.has(couplet)) proposeScrolls(couplet);
}

function takeScroll() {
  shown.ownScroll = [...part("scroll").value.replace(/\s/gu, "")].slice(0, MAX_SCROLL).join("");
  redrawScroll();
}

async function proposeScrolls(couplet) {
  const { first, second } = couplet;
  asked.add(couplet);
  scrollError.tell(null);
  try {
    const { scrolls } = await ask("v1/scroll", { first, second, n_best: SCROLLS });
    couplet.scrolls = scrolls.map(({ text }) => text);
    couplet.scroll ??= couplet.scrolls[0] ?? "";
    redrawScroll();
  } catch (failure) {
    scrollError.tellError(failure);
  }
}
