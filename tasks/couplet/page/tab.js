// The couplet tab: asks for 下联, hangs one beside the 上联, lists the others.

import { ApiError, ask } from "../../page/api.js";
import { copyText } from "../../page/clipboard.js";
import { button, partsOf } from "../../page/elements.js";
import { askFor, confirm, isBusy, Sentence } from "../../page/feedback.js";
import { onLanguage } from "../../page/language.js";
import { details } from "../../page/models.js";
import { candidateCard } from "./candidates.js";
import { hangPair } from "./pair.js";
import { savePicture } from "./picture.js";
import { changedRules, startRules } from "./rules.js";
import { word } from "./words.js";

const part = partsOf("couplet");
const EXAMPLES = ["晚风摇树树还挺", "海内存知己", "春风又绿江南岸", "书山有路勤为径", "国泰民安，万家喜庆"];
const HANZI = /\p{Script=Han}/u;
const LONGEST_SHOWN = 64; // characters of a line that is not yet answered
const FREE = "？";
const INKS = { black: "gold", gold: "black" };

/** What is shown: an answer of the server, which of its candidates hangs, and which places of it are locked. */
const shown = { answer: null, place: 0, locks: new Set() };
let error, status;

/** Connect the tab. */
export function start() {
  error = new Sentence(part("error"), word);
  status = new Sentence(part("status"), word);
  startRules(part("rules"));
  part("first").addEventListener("input", draw);
  part("examples").append(...EXAMPLES.map((line) => button(line, { class: "example" }, () => take(line))));
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    answerLine();
  });
  part("again").addEventListener("click", () => {
    part("first").value = shown.answer.first;
    answerLine();
  });
  part("unlock").addEventListener("click", () => {
    shown.locks.clear();
    draw();
  });
  part("ink").addEventListener("click", () => {
    part("pair").dataset.ink = INKS[part("pair").dataset.ink];
    drawButtons();
  });
  part("copy").addEventListener("click", () => finish("copy", copied, "copied", "copyFailed"));
  part("save").addEventListener("click", () => finish("save", saved, "saved", "saveFailed", "savePicture"));
  onLanguage(draw);
  draw();
}

function take(line) {
  if (isBusy(part("ask"))) return;
  part("first").value = line;
  draw();
  answerLine();
}

async function answerLine() {
  const buttons = [part("ask"), part("again")];
  if (isBusy(buttons[0])) return;
  const first = part("first").value.trim();
  if (refuse(first)) return;
  if (first !== shown.answer?.first) shown.locks.clear();
  const locks = new Set(shown.locks); // those that the request holds, whatever is clicked meanwhile
  part("pair").dataset.busy = "true";
  await askFor(
    { buttons, error, status, doing: "answering" },
    () => ask("v1/couplet", request(first)),
    (answer) => {
      if (!answer.predictions?.length) throw new ApiError("nothing");
      Object.assign(shown, { answer, place: 0, locks });
      status.tell("answered", { count: answer.predictions.length, text: answer.predictions[0].text });
      draw();
    },
  );
  delete part("pair").dataset.busy;
}

/** Whether a line was refused as a 上联 without asking the server. */
function refuse(first) {
  const length = [...first.replace(/\s/gu, "")].length;
  const limit = details("couplet").longest_line ?? Infinity;
  const fault = first === "" ? "emptyFirst" : !HANZI.test(first) ? "noHanzi" : length > limit ? "tooLong" : null;
  if (fault === null) return false;
  error.tell(fault, { length, limit });
  part("first").focus();
  return true;
}

function request(first) {
  const wanted = { first };
  if (shown.locks.size > 0) wanted.lock = template();
  const rules = changedRules();
  if (Object.keys(rules).length > 0) wanted.rules = rules;
  return wanted;
}

/** One character for each of the 上联: the locked ones of the 下联 that hangs, and ？ elsewhere. */
function template() {
  const second = [...hanging().text];
  return [...shown.answer.line].map((_, place) => (shown.locks.has(place) ? second[place] : FREE)).join("");
}

const hanging = () => shown.answer.predictions[shown.place];

/** Hang another candidate, and drop the locks of characters that it does not have. */
function hang(place) {
  const before = [...hanging().text];
  const after = [...shown.answer.predictions[place].text];
  for (const lock of shown.locks) if (before[lock] !== after[lock]) shown.locks.delete(lock);
  shown.place = place;
  draw();
}

function toggleLock(place) {
  if (!shown.locks.delete(place)) shown.locks.add(place);
  drawButtons();
  return shown.locks.has(place);
}

function draw() {
  const { answer, locks } = shown;
  const written = part("first").value.trim();
  const isAnswered = answer !== null && (written === "" || written === answer.first);
  part("result").hidden = !isAnswered;
  if (!isAnswered) {
    hangPair(part("pair"), [...written.replace(/\s/gu, "")].slice(0, LONGEST_SHOWN).join(""), "");
    return;
  }
  hangPair(part("pair"), answer.line, hanging().text, locks, toggleLock);
  const cards = answer.predictions.map((_, place) => candidateCard(answer, place, place === shown.place, hang));
  const focused = [...part("candidates").children].findIndex((card) => card.contains(document.activeElement));
  part("candidates").replaceChildren(...cards);
  part("candidates").dataset.length = [...answer.line].length > 9 ? "long" : "short";
  if (focused >= 0) cards[focused]?.querySelector("button").focus();
  drawButtons();
}

function drawButtons() {
  const count = shown.locks.size;
  part("again").textContent = count > 0 ? word("askLocked", { count }) : word("askAgain");
  part("again").hidden = count === 0;
  part("unlock").hidden = count === 0;
  part("ink").textContent = word(part("pair").dataset.ink === "black" ? "inkGold" : "inkBlack");
  for (const character of part("pair").querySelectorAll("button[data-place]")) {
    character.setAttribute("aria-pressed", String(shown.locks.has(Number(character.dataset.place))));
  }
}

const copied = () => copyText(`${shown.answer.line}\n${hanging().text}`);
const saved = () => savePicture(shown.answer.line, hanging().text, part("pair").dataset.ink);

async function finish(id, work, done, failed, own = id) {
  if (await work()) {
    error.tell(null);
    status.tell(done);
    confirm(part(id), () => word(done), () => word(own));
  } else {
    error.tell(failed);
  }
}
