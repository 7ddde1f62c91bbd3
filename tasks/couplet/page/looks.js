// How the couplet looks that hangs: its paper, which follows its words, the ink, the font, the characters; and its sheets.

import { element, partsOf } from "../../page/elements.js";
import { FONTS, handFor } from "../../page/brush.js";
import { printSheets } from "../../page/keep.js";
import { onLanguage } from "../../page/language.js";
import { isTraditional, loadTraditional, traditional } from "../../page/traditional.js";
import { PAPERS, sheetsOf } from "./print.js";
import { scrollOf } from "./scroll.js";
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
const look = { ...USUAL };
let chosenGrounds = {}; // by hand, of each occasion; the next couplet of that occasion hangs on it too
let isScriptChosen = false;
let redraw, hung;

/**
 * Connect the choices.
 * @param {() => ?Couplet} hanging the couplet that hangs
 * @param {Sentence} error
 * @param {() => void} draw called when it is to look otherwise
 */
export function startLooks(hanging, error, draw) {
  [hung, redraw] = [hanging, draw];
  for (const [name, values] of Object.entries(CHOICES)) {
    part(name).append(...values.map((value) => element("option", { value })));
    part(name).addEventListener("change", () => choose(name, part(name).value).catch((failure) => error.tellError(failure)));
  }
  part("paper").append(...Object.keys(PAPERS).map((name) => element("option", { value: name })));
  part("print").addEventListener("click", () => {
    const paper = part("paper").value;
    printSheets(sheetsOf(onPaper(hung()), paper, { ...lookOf(hung()), isRed: part("red").checked }), PAPERS[paper].size);
  });
  onLanguage(drawLooks);
}

async function choose(name, value) {
  if (name !== "ground") look[name] = value;
  else if (hung().ground === undefined) chosenGrounds[occasionOf(hung())] = value;
  else hung().ground = value; // it was kept or sent with a paper of its own
  if (name === "script") {
    isScriptChosen = true;
    await loadTraditional();
  }
  redraw();
}

/** Take the look that an address names; the paper belongs to its couplet. */
export async function dress(values) {
  for (const [name, usual] of Object.entries(USUAL)) look[name] = CHOICES[name].includes(values[name]) ? values[name] : usual;
  isScriptChosen = look.script === "older";
  if (isScriptChosen) await loadTraditional();
  redraw();
}

/** The paper that an address names, if there is such a one. */
export const groundIn = ({ ground }) => (Object.hasOwn(GROUNDS, ground ?? "") ? ground : undefined);

/** What was chosen by hand, and how to choose it again. */
export const chosenLooks = () => ({ look, chosenGrounds, isScriptChosen });
export function chooseLooks(chosen) {
  Object.assign(look, chosen.look);
  ({ chosenGrounds, isScriptChosen } = chosen);
  if (look.script === "older") loadTraditional().then(() => redraw(), reportError);
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

/** A text, and a couplet, in the characters that are chosen for the paper. */
export const inScript = (text) => (look.script === "older" ? traditional(text) : text);
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
  const couplet = hung();
  if (couplet === null) return;
  const { ground, ink } = lookOf(couplet);
  for (const [name, value] of Object.entries({ ...look, ground, ink })) {
    for (const choice of part(name).children) choice.textContent = word(`${name}_${choice.value}`);
    part(name).value = value;
  }
  const isRed = GROUNDS[ground].colours.gold !== undefined;
  part("ink").hidden = part("red-choice").hidden = !isRed;
  for (const choice of part("paper").children) choice.textContent = word(`paper_${choice.value}`);
}
