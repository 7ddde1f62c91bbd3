// The couplet tab: asks for couplets, hangs one beside the door, lists the others.

import { ask } from "../../page/api.js";
import { partsOf } from "../../page/elements.js";
import { askFor, isBusy, Sentence } from "../../page/feedback.js";
import { copyFrom, startKeeping } from "../../page/keep.js";
import { onFonts } from "../../page/brush.js";
import { loadPinyin } from "../../page/characters.js";
import { language, onLanguage } from "../../page/language.js";
import { recall, remember } from "../../page/memory.js";
import { offered, onModels } from "../../page/models.js";
import { linkTo, onAddress, setAddress } from "../../page/tabs.js";
import { candidateCard } from "./candidates.js";
import { changed, ownCouplet } from "./couplets.js";
import {
  chooseLooks, chosenLooks, dress, dressed, drawLooks, drawScrolls, followScript, groundIn, linesInScript, lookOf, onPaper, scrollOf,
  startLooks,
} from "./looks.js";
import { challenge, chosenMode, emptyField, showPair, startModes, takeLine, theme, typeAgain, typed, typedLines } from "./modes.js";
import { hangPair, hangScroll } from "./pair.js";
import { pictureOf } from "./picture.js";
import { word } from "./words.js";
import { groundFor } from "./writing.js";

const part = partsOf("couplet");
const MAX_SHOWN = 64; // characters of a line that is not yet answered
const FREE = "？";
const PAUSE = 250; // ms without a change by hand before the server judges it
const KEY = "paddle_dialog.couplet.shown";

/**
 * What is shown: couplets, the lines they were asked for with, which one hangs, which places of it are locked, and whether
 * it answers a friend. It is kept until the browser's tab is closed.
 */
const shown = { couplets: [], asked: {}, place: 0, locks: new Set(), isEditing: false, isReply: false };
let error, status, pause, drawKeeping;

/** Connect the tab. */
export function start() {
  error = new Sentence(part("error"), word);
  status = new Sentence(part("status"), word);
  for (const side of ["first", "second"]) part(side).addEventListener("input", draw);
  part("form").addEventListener("input", keepShown);
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  part("again").addEventListener("click", rewrite);
  part("unlock").addEventListener("click", () => {
    shown.locks.clear();
    draw();
    part("pair").querySelector("button")?.focus();
  });
  part("edit").addEventListener("click", () => {
    shown.isEditing = !shown.isEditing;
    draw();
    if (shown.isEditing) part("pair").querySelector(".second input")?.focus();
  });
  part("restore").addEventListener("click", () => {
    shown.couplets[shown.place] = hanging().original;
    draw();
    part("edit").focus();
  });
  part("challenge").addEventListener("click", () => {
    const values = shown.isReply ? valuesOf(hung()) : { u: hung().first, ...dressed(hung()) };
    copyFrom(part("challenge"), linkTo("couplet", values), { error, status });
  });
  startLooks(hanging, error, draw, drawScroll);
  takeUpAgain();
  drawKeeping = startKeeping("couplet", {
    sentences: { error, status },
    shown: () => shown.couplets.length > 0 && valuesOf(hung()),
    name: (values) => Object.values(linesOf(values)).slice(0, 2).join("-"),
    text: (values) => asText(values.script === "older" ? onPaper(linesOf(values)) : linesOf(values)),
    show: hangKept,
    picture: (signature) => pictureOf(onPaper(hung()), lookOf(hung()), signature),
    hasPrint: false, // it has sheets of its own
  });
  startModes(draw, answer);
  part("let").addEventListener("click", () => {
    takeLine("first", part("first").value);
    answer();
  });
  onLanguage(draw);
  onLanguage(showReadings);
  onFonts(draw);
  draw();
  showReadings();
  onModels(() => onAddress("couplet", openLink));
}

/** In English, load how characters are read. */
function showReadings() {
  if (language() === "en") loadPinyin().then(draw, reportError);
}

/** The lines that an address, or a couplet that was kept, has; `first`, `second` and `scroll` are of former kept ones. */
const linesOf = ({ u, d, h, first = u, second = d, scroll = h }) => ({ first, second, scroll: scroll ?? "" });

const valuesOf = (couplet) => ({ u: couplet.first, d: couplet.second, h: couplet.scroll, ...dressed(couplet) });

const asText = ({ first, second, scroll }) => [first, second, ...(scroll === "" ? [] : [`横批：${scroll}`])].join("\n");

const cut = (line) => [...line.replace(/\s/gu, "")].slice(0, MAX_SHOWN).join("");

/** Show what an address says: a couplet, or a 上联 for somebody to answer. */
function openLink({ u = "", d = "", h = "", ...look }) {
  const [first, second, scroll] = [u, d, h].map(cut);
  if (first === "") return;
  if (shown.couplets.length > 0 && hung().first === first && hung().second === second) return; // after a reload
  if (second !== "") return hangKept({ u: first, d: second, h: scroll, ...look });
  shown.couplets = [];
  part("challenged").hidden = false;
  challenge(first);
  dress(look);
}

const hanging = () => shown.couplets[shown.place];
/** The couplet that hangs, with the 横批 that it has there. */
const hung = () => ({ ...hanging(), scroll: scrollOf(hanging()) });
const lockable = ({ written }) => (written === "first" ? "first" : "second");
const given = (couplet) => (lockable(couplet) === "first" ? "second" : "first");

async function answer() {
  const buttons = [part("ask"), part("again")];
  if (isBusy(buttons[0])) return;
  const mode = chosenMode();
  const empty = emptyField();
  if (empty !== undefined) {
    error.tell(`empty_${empty}`);
    part(empty).focus();
    return;
  }
  const [path, body] = mode.request();
  const asked = typedLines();
  if (!isAskedAgain(mode, asked)) shown.locks.clear();
  const locks = new Set(shown.locks); // those that the request holds, whatever is clicked meanwhile
  if (locks.size > 0) body.lock = template();
  part("pair").dataset.busy = "true";
  let isFirst = true;
  const take = (answered) => {
    const couplets = mode.read(answered, body);
    if (!isFirst) return showMore(couplets);
    isFirst = false;
    show(couplets, asked, locks, !part("challenged").hidden);
    followScript(Object.values(body).filter((value) => typeof value === "string").join("")).catch(reportError);
    if (matchMedia("(pointer: coarse)").matches) document.activeElement.blur(); // its keyboard covers the answer
    delete part("pair").dataset.busy;
    part("pair").scrollIntoView({ block: "nearest" });
  };
  await askFor(
    { buttons, error, status, doing: mode.words.doing },
    (signal) => ask(path, body, signal, mode.isInParts ? take : undefined),
    (answered) => {
      take(answered);
      const { first, second } = shown.couplets[0];
      status.tell(answered.isCut ? "cut" : mode.words.done, { count: shown.couplets.length, first, second });
    },
  );
  delete part("pair").dataset.busy;
}

/** Whether the line is the one that the hanging couplet answers, so that its locks hold. */
function isAskedAgain(mode, asked) {
  if (shown.couplets.length === 0) return false;
  const side = given(hanging());
  return mode.given === side && asked[side] === shown.asked[side];
}

function show(couplets, asked, locks = new Set(), isReply = false) {
  Object.assign(shown, { couplets, asked, place: 0, locks, isReply, isEditing: false });
  part("challenged").hidden = true;
  draw();
}

/** Show more and better couplets; what hangs stays while it is among them, or where somebody is changing it. */
function showMore(couplets) {
  const { first, second } = hanging().original ?? hanging();
  const at = couplets.findIndex((one) => one.first === first && one.second === second);
  if (at < 0 && !shown.isEditing && hanging().original === undefined) return show(couplets, shown.asked, new Set(), shown.isReply);
  couplets.splice(Math.max(0, at), Number(at >= 0), hanging());
  Object.assign(shown, { couplets, place: Math.max(0, at) });
  drawResult();
}

/** Ask for the line with the locked characters anew. */
function rewrite() {
  if (isBusy(part("ask"))) return;
  const side = given(hanging());
  shown.asked = { ...shown.asked, [side]: hanging()[side] };
  takeLine(side, hanging()[side]);
  answer();
}

/** One character for each of the given line: the locked ones of the other, and ？ elsewhere. */
function template() {
  const couplet = hanging();
  const characters = [...couplet[lockable(couplet)]];
  return [...couplet[given(couplet)]].map((_, at) => (shown.locks.has(at) ? characters[at] : FREE)).join("");
}

/** Hang a couplet that was kept. */
function hangKept(values) {
  const { first, second, scroll } = linesOf(values);
  showPair(first, second);
  const ground = groundIn(values) ?? groundFor("", first + second);
  show([ownCouplet(first, second, scroll, ground)], { first, second });
  dress(values);
  judge(hanging());
  part("pair").scrollIntoView({ block: "nearest" });
}

/** Hang another couplet, and drop the locks of characters that it does not have. */
function hang(place) {
  const side = lockable(hanging());
  const [before, after] = [hanging(), shown.couplets[place]].map((couplet) => [...couplet[side]]);
  for (const lock of shown.locks) if (before[lock] !== after[lock]) shown.locks.delete(lock);
  shown.place = place;
  draw();
  part("pair").scrollIntoView({ block: "nearest" });
}

function toggleLock(place) {
  if (!shown.locks.delete(place)) shown.locks.add(place);
  drawButtons();
  return shown.locks.has(place);
}

/** Take characters that were written over those of a line. */
function write(side, place, characters) {
  shown.couplets[shown.place] = changed(hanging(), side, place, characters);
  drawResult(); // without the pair, in which somebody is writing
  clearTimeout(pause);
  pause = setTimeout(judge, PAUSE, hanging());
}

/** Have the server judge the form of a couplet that no model wrote so. */
async function judge(couplet) {
  if (couplet.score !== undefined || offered("/v1/form") === null) return;
  const { first, second } = couplet;
  try {
    Object.assign(couplet, await ask("v1/form", { first, second }));
    error.tell(null);
  } catch (failure) {
    error.tellError(failure);
  }
  if (shown.couplets.includes(couplet)) drawResult();
}

/** The lines being written, where they are not those of the couplets; else null. */
function draft() {
  const lines = Object.entries(typedLines());
  const isOther = lines.some(([side, line]) => line !== "" && line !== shown.asked[side]);
  if (shown.couplets.length > 0 && !isOther) return null;
  return { first: "", second: "", scroll: "", theme: theme(), ...Object.fromEntries(lines.map(([side, line]) => [side, cut(line)])) };
}

function draw() {
  const written = draft();
  part("result").hidden = written !== null;
  keepShown();
  if (written !== null) {
    hangPair(part("pair"), onPaper(written), lookOf(written));
    return;
  }
  const { locks, isEditing } = shown;
  const hands = { isEditing, lockable: lockable(hanging()), locks, toggle: toggleLock, write };
  hangPair(part("pair"), isEditing ? hung() : onPaper(hung()), lookOf(hung()), hands);
  drawScrolls(hanging());
  drawResult();
}

/** Another 横批; somebody may be writing in the pair, which stays. */
function drawScroll() {
  if (draft() !== null) return;
  hangScroll(part("pair"), onPaper(hung()).scroll);
  drawScrolls(hanging());
  drawShown();
}

/** What follows the couplet that hangs, wherever it has changed. */
function drawShown() {
  setAddress("couplet", valuesOf(hung()));
  keepShown();
  drawLooks();
  drawKeeping();
}

function drawResult() {
  drawShown();
  const cards = shown.couplets.map((couplet, place) => candidateCard(couplet, linesInScript(couplet), place === shown.place, () => hang(place)));
  const focused = [...part("candidates").children].findIndex((card) => card.contains(document.activeElement));
  part("candidates").replaceChildren(...cards);
  part("candidates").dataset.length = [...hanging().first].length > 9 ? "long" : "short";
  if (focused >= 0) cards[focused]?.querySelector("button").focus();
  drawButtons();
}

function drawButtons() {
  if (shown.couplets.length === 0) return;
  const count = shown.locks.size;
  part("again").textContent = word("askLocked", { count });
  part("again").hidden = count === 0;
  part("unlock").hidden = count === 0;
  part("edit").setAttribute("aria-pressed", String(shown.isEditing));
  part("restore").hidden = hanging().original === undefined;
  part("hint").textContent = word(shown.isEditing ? "editHint" : lockable(hanging()) === "first" ? "lockHintFirst" : "lockHint");
  part("challenge").textContent = word(shown.isReply ? "sendBack" : "challenge");
  for (const character of part("pair").querySelectorAll("button[data-place]")) {
    character.setAttribute("aria-pressed", String(shown.locks.has(Number(character.dataset.place))));
  }
}

function keepShown() {
  const { couplets, asked, place, isReply } = shown;
  remember("sessionStorage", KEY, { couplets, asked, place, isReply, typed: typed(), looks: chosenLooks() });
}

function takeUpAgain() {
  const kept = recall("sessionStorage", KEY);
  if (kept === null) return;
  const { typed: values, looks, ...former } = kept;
  typeAgain(values);
  chooseLooks(looks);
  Object.assign(shown, former);
}
