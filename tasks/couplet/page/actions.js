// What can be done with the couplet that hangs: its paper, ink and font, keeping it, sending it, printing.

import { element, partsOf, setVariable } from "../../page/elements.js";
import { confirm } from "../../page/feedback.js";
import { copyText, printSheets } from "../../page/handing_over.js";
import { FONTS } from "../../page/ink.js";
import { showKeepsake } from "../../page/keepsake.js";
import { onLanguage } from "../../page/language.js";
import { linkTo } from "../../page/tabs.js";
import { isTraditional, loadTraditional, traditional } from "../../page/traditional.js";
import { asText, isLiked, toggleLiked } from "./liked.js";
import { drawPicture } from "./picture.js";
import { PAPERS, sheetsOf } from "./print.js";
import { word } from "./words.js";
import { GROUNDS, groundFor } from "./writing.js";

const part = partsOf("couplet");
const PAPER_WORDS = { one: "paperOne", characters: "paperCharacters", scrolls: "paperScrolls", halfSheets: "paperHalfSheets" };
const CHOICES = {
  ground: Object.keys(GROUNDS),
  ink: ["black", "gold"],
  font: ["brush", "kai", "song"],
  script: ["plain", "older"],
};
const look = { ground: "gold", ink: "black", font: "brush", script: "plain" };
let occasion = "gold";
let redraw;

/**
 * Connect the buttons.
 * @param {() => {first: string, second: string, scroll: string}} hung the couplet that hangs
 * @param {{error: Sentence, status: Sentence}} sentences
 * @param {() => void} draw called when it is to look otherwise
 */
export function startActions(hung, { error, status }, draw) {
  redraw = draw;
  for (const [name, values] of Object.entries(CHOICES)) {
    part(name).append(...values.map((value) => element("option", { value })));
    part(name).addEventListener("change", () => dress({ [name]: part(name).value }).catch((failure) => error.tellError(failure)));
  }
  const written = () => onPaper(hung());
  const copy = async (id, text) => {
    const isDone = await copyText(text);
    if (!isDone) return error.tell("copyFailed");
    error.tell(null);
    status.tell("copied");
    confirm(part(id), () => word("copied"), () => word(id));
  };
  part("copy").addEventListener("click", () => copy("copy", asText(written())));
  part("challenge").addEventListener("click", () => copy("challenge", linkTo("couplet", { u: hung().first, ...dressed() })));
  part("save").addEventListener("click", () => {
    const { first, second, scroll } = written();
    const draw = (name) => drawPicture({ first, second, scroll }, { ...look, font: hand() }, name);
    const link = linkTo("couplet", addressOf(hung()));
    showKeepsake({ draw, link, file: `${first}-${second}.png`, text: asText({ first, second, scroll }) });
  });
  part("like").addEventListener("click", () => {
    toggleLiked(hung());
    status.tell(isLiked(hung()) ? "likedNow" : "likedNoMore");
  });
  part("print").addEventListener("click", () => {
    const paper = part("paper").value;
    printSheets(sheetsOf(written(), paper, { ...look, font: hand(), isRed: part("red").checked }), PAPERS[paper].size);
  });
  part("paper").append(...Object.keys(PAPERS).map((name) => element("option", { value: name })));
  onLanguage(drawLook);
  drawLook();
}

/** Another look; a paper that no gold is written on takes black ink. */
export async function dress(changes) {
  const known = Object.entries(changes).filter(([name, value]) => CHOICES[name]?.includes(value));
  Object.assign(look, Object.fromEntries(known));
  if (GROUNDS[look.ground].colours[look.ink] === undefined) look.ink = "black";
  if (look.script === "older") await loadTraditional();
  drawLook();
  redraw();
}

/** Take the paper of an occasion, where it is another one than before. */
export function dressFor(theme, lines) {
  const wanted = groundFor(theme, lines);
  if (wanted === occasion) return;
  occasion = wanted;
  dress({ ground: wanted });
}

/** Write in traditional characters where somebody has asked in such. */
export async function followScript(text) {
  await loadTraditional();
  if (look.script === "plain" && isTraditional(text)) await dress({ script: "older" });
}

/** A couplet in the characters that are chosen for the paper. */
export function onPaper({ first, second, scroll }) {
  const turned = (text) => (look.script === "older" ? traditional(text) : text);
  return { first: turned(first), second: turned(second), scroll: turned(scroll) };
}

/** The font on the paper: no brush has traditional characters. */
const hand = () => (look.script === "older" && look.font === "brush" ? "kai" : look.font);

/** What the address says of a couplet: u and d are its lines, h its 横批. */
export const addressOf = ({ first, second, scroll }) => ({ u: first, d: second, h: scroll, ...dressed() });

/** What the address says of the look, where it is not the usual one. */
function dressed() {
  const usual = { ground: "gold", ink: "black", font: "brush", script: "plain" };
  return Object.fromEntries(Object.entries(look).filter(([name, value]) => value !== usual[name]));
}

/** Say on the button whether the couplet that hangs is kept. */
export function drawLike(couplet) {
  part("like").textContent = word(isLiked(couplet) ? "unlike" : "like");
}

function drawLook() {
  Object.assign(part("pair").dataset, { ink: look.ink, ground: look.ground });
  setVariable(part("pair"), "--hand", FONTS[hand()]);
  const { colours } = GROUNDS[look.ground];
  for (const [name, value] of Object.entries(look)) {
    for (const choice of part(name).children) choice.textContent = word(`${name}_${choice.value}`);
    part(name).value = value;
  }
  part("ink").hidden = colours.gold === undefined;
  part("red-choice").hidden = colours.gold === undefined;
  for (const choice of part("paper").children) choice.textContent = word(PAPER_WORDS[choice.value]);
}
