// The conversation tab: turns, the replies to them, and going back.

import { ApiError, ask } from "../../page/api.js";
import { button, element, fillChoices, partsOf, setVariable } from "../../page/elements.js";
import { askFor, isBusy, Sentence } from "../../page/feedback.js";
import { copyFrom, saveText } from "../../page/keep.js";
import { language, onLanguage } from "../../page/language.js";
import { recall, remember } from "../../page/memory.js";
import { allDetails, details, onModels } from "../../page/models.js";
import { word } from "./words.js";

const part = partsOf("empathetic");
const OPENINGS = {
  en: ["I lost my dog yesterday.", "I finally got the job I wanted!", "Someone keeps stealing my lunch at work."],
  zh: ["昨天我的狗走丢了。", "我终于拿到了想要的工作！", "最近总是睡不好，心里很烦。"],
};
const REPLIES = 5;
const KEY = "paddle_dialog.empathetic.talk";
const MOST_READ = { turns: 41, characters: 12_000 }; // of a talk; the oldest turns are not sent
// What is said in a talk of either language and switches to none.
const FILLERS = /^(?:ok(?:ay)?|(?:ha)+h?|lol|hi|hey|hello|bye|wow|oh|hmm+|emm+|yes|no|yeah|thx|thanks)$/iu;
const PHONES = /(?<![\d-])(1-800-\d{3}-\d{4}|080[08] [\d ]+\d|116 123|123\d\d|1925|988|999|911|11[0-3]|120)(?![\d-])/u;

/**
 * What was said: {text, language, answer, pick, given, isUnfolded, isFelt} a turn; `pick` is the reply taken,
 * `given` the emotion that somebody chose, the last two what is open. It is kept until the browser's tab is closed.
 */
let exchanges = recall("sessionStorage", KEY) ?? [];
let pending = null; // what is said and not yet answered
let cleared = null; // the talk before it was begun anew
let error, status;

/** The languages that the server has models for. */
const known = () => allDetails("empathetic").map((one) => one.language ?? "en");

/** The language of the model that is to read a text: words switch it, an emoji or an "ok" does not. */
function languageOf(text) {
  const words = (text.match(/\p{Script=Latin}+/gu) ?? []).filter((one) => !FILLERS.test(one));
  const before = exchanges.at(-1)?.language;
  const isEnglish = words.length > (before === undefined ? 0 : 1);
  const wanted = /\p{Script=Han}/u.test(text) ? "zh" : isEnglish ? "en" : (before ?? language());
  return known().length === 0 || known().includes(wanted) ? wanted : known()[0];
}

/** Connect the tab. */
export function start() {
  error = new Sentence(part("error"), word);
  status = new Sentence(part("status"), word);
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    say(part("turn").value.trim());
  });
  part("turn").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    part("form").requestSubmit();
  });
  part("undo").addEventListener("click", undo);
  part("reset").addEventListener("click", reset);
  part("save").addEventListener("click", () => {
    const lines = exchanges.flatMap(({ text, answer, pick }) => [`${word("you")}: ${text}`, `${word("listener")}: ${answer.predictions[pick].text}`]);
    saveText(lines.join("\n"), word("talk"));
  });
  onLanguage(draw);
  onModels(draw);
  draw();
}

async function say(text) {
  if (isBusy(part("send"))) return; // what is written meanwhile stays
  if (text === "") {
    error.tell("emptyTurn");
    part("turn").focus();
    return;
  }
  part("turn").value = "";
  pending = text;
  draw();
  showLast();
  const exchange = await answered(exchanges, { text, given: null });
  pending = null;
  if (exchange === null) {
    part("turn").value = [text, part("turn").value].filter(Boolean).join("\n"); // nothing that was written is lost
  } else {
    exchanges.push(exchange);
    cleared = null;
  }
  draw();
  part("turn").focus({ preventScroll: true });
  showLast();
}

/** Show the end of the talk; of an answer about help, its beginning. */
function showLast() {
  const last = part("turns").lastElementChild;
  last?.scrollIntoView({ block: last.classList.contains("care") ? "start" : "end" });
}

/** An exchange with the server's answer; null, with the reason shown, if there is none. */
async function answered(before, { text, given }) {
  const chosen = languageOf(text);
  const own = before.filter((one) => one.language === chosen); // what its model can read
  const context = own.flatMap((one) => [one.text, one.answer.predictions[one.pick].text]);
  const { turns = MOST_READ.turns } = details("empathetic", chosen);
  while (context.length >= turns || (context.length > 0 && context.join("").length > MOST_READ.characters)) context.splice(0, 2);
  const request = { context: [...context, text], n_best: REPLIES };
  if (details("empathetic", chosen).language) request.language = chosen;
  if (given !== null) request.emotion = given;
  let exchange = null;
  await askFor(
    { buttons: [part("send"), part("undo"), part("reset")], error, status, doing: "listening" },
    (stop) => ask("v1/reply", request, stop),
    (answer) => {
      if (!answer.predictions?.length) throw new ApiError("nothing");
      const said = answer.predictions[0].text;
      if (answer.care || !isClear(answer)) status.tell("repliedOnly", { text: said });
      else status.tell("replied", { emotion: emotionName(answer.emotion, chosen), text: said });
      exchange = { text, language: chosen, answer, given, pick: 0 };
    },
  );
  return exchange;
}

/** Ask for the last reply again with another emotion, which is to change it. */
async function again(given) {
  if (isBusy(part("send"))) return;
  const last = exchanges.at(-1);
  const exchange = await answered(exchanges.slice(0, -1), { text: last.text, given });
  if (exchange === null) return;
  const { predictions } = exchange.answer;
  const said = last.answer.predictions[last.pick].text;
  if (exchange.given !== null) exchange.pick = Math.max(predictions.findIndex(({ text }) => text !== said), 0);
  Object.assign(exchange, { isUnfolded: last.isUnfolded, isFelt: last.isFelt });
  exchanges[exchanges.length - 1] = exchange;
  draw();
}

function undo() {
  if (isBusy(part("undo"))) return;
  if (exchanges.length === 0) exchanges = cleared;
  else part("turn").value = exchanges.pop().text;
  cleared = null;
  forget();
}

function reset() {
  if (isBusy(part("reset"))) return;
  cleared = exchanges;
  exchanges = [];
  part("turn").value = "";
  forget();
}

function forget() {
  error.tell(null);
  status.tell(null);
  draw();
  part("turn").focus();
}

const keep = () => remember("sessionStorage", KEY, exchanges);

function draw() {
  const focus = document.activeElement?.dataset?.focus;
  const turns = exchanges.flatMap((exchange, place) => turnsOf(exchange, place === exchanges.length - 1 && pending === null));
  if (pending !== null) turns.push(element("li", { class: "turn speaker" }, ...bubble("you", pending)), waiting());
  part("turns").replaceChildren(...turns);
  const isEmpty = turns.length === 0;
  part("undo").hidden = isEmpty && cleared === null;
  part("undo").textContent = word(cleared === null ? "undo" : "undoReset");
  part("reset").hidden = part("save").hidden = isEmpty;
  part("openings-group").hidden = !isEmpty;
  drawLanguage();
  keep();
  if (focus) part("turns").querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

const waiting = () =>
  element("li", { class: "turn listener waiting", "aria-hidden": "true" }, element("p", { class: "bubble" }, "……"));

/** What depends on the language of the page alone. */
function drawLanguage() {
  const chosen = known().length === 0 || known().includes(language()) ? language() : known()[0];
  const openings = OPENINGS[chosen];
  part("openings").replaceChildren(...openings.map((line) => button(line, { class: "example" }, () => say(line))));
  part("only").hidden = chosen === language();
  part("only").textContent = word(chosen === "en" ? "onlyEnglish" : "onlyChinese");
  part("turn").placeholder = exchanges.length > 0 ? word("turnNext") : word("turnPlaceholder", { example: openings[0] });
  part("notice").replaceChildren(...withPhones(word("notice")));
  for (const place of ["turn", "openings"]) part(place).lang = tagOf(chosen);
}

const tagOf = (chosen) => (chosen === "zh" ? "zh-Hans" : "en");

/** The language of a text, for fonts and voices. */
const tagOfText = (text) => tagOf(/\p{Script=Han}/u.test(text) ? "zh" : "en");

/** Whether an emotion is clear; the server says null where none is. */
const isClear = (answer) => answer.emotion !== null;

function turnsOf(exchange, isOpen) {
  const { text, answer, pick } = exchange;
  const speaker = element("li", { class: "turn speaker" }, ...bubble("you", text));
  if (answer.hint) speaker.append(element("p", { class: "hint", lang: tagOfText(answer.hint) }, answer.hint));
  if (answer.care) return [speaker, caring(answer.predictions[0].text)];
  speaker.append(felt(exchange, isOpen));
  const listener = element("li", { class: "turn listener" }, ...bubble("listener", answer.predictions[pick].text));
  if (isOpen) listener.append(more(exchange));
  return [speaker, listener];
}

/** The emotion as one word; unfolded, the likeliest ones and the choice of another. */
function felt(exchange, isOpen) {
  const { answer, given, language: chosen } = exchange;
  const choose = isOpen ? (label) => again(label) : null;
  const name = (label) => emotionName(label, chosen);
  if (given === null && !isClear(answer) && !isOpen) return "";
  const named = isClear(answer) ? name(answer.emotion) : word("chooseOne");
  const said = given !== null ? word("given", { emotion: name(given) }) : named;
  const summary = element("summary", { "data-focus": "felt" }, said);
  const inside = [emotionChart(answer.emotions, name, given ?? answer.emotion, choose)];
  if (choose !== null) {
    inside.unshift(element("p", { class: "hint" }, word("feltHint")));
    inside.push(emotionChoice(chosen, given, choose));
  }
  return folded(exchange, "isFelt", "felt hint", summary, ...inside);
}

function folded(exchange, key, name, ...children) {
  const made = element("details", { class: name, open: Boolean(exchange[key]) }, ...children);
  made.addEventListener("toggle", () => {
    exchange[key] = made.open;
    keep();
  });
  return made;
}

/** The fixed answer to somebody who speaks of self-harm: no emotion to correct, no other replies. */
function caring(text) {
  const note = element("p", { class: "hint" }, word("fixedAnswer"));
  return element("li", { class: "turn listener care" }, ...bubble("listener", text, withPhones(text)), note);
}

function bubble(who, text, shown = [text]) {
  const speaker = element("span", { class: "unseen", lang: document.documentElement.lang }, `${word(who)}: `);
  const copy = button(word("copy"), { class: "copy quiet small", title: word("copyBubble") }, () => copyFrom(copy, text, { error, status }));
  return [element("p", { class: "bubble", lang: tagOfText(text) }, speaker, ...shown), copy];
}

/** A text whose numbers of hotlines can be called. */
const withPhones = (text) =>
  text.split(PHONES).map((one, at) => (at % 2 === 0 ? one : element("a", { href: `tel:${one.replace(/[ -]/gu, "")}` }, one)));

/** The other replies. */
function more(exchange) {
  const { answer, pick } = exchange;
  const others = answer.predictions.map(({ text }, place) => [text, place]).filter(([, place]) => place !== pick);
  const list = others.map(([text, place]) =>
    element("li", {}, button(text, { class: "other small", lang: tagOfText(text), title: word("takeReply") }, () => take(place))),
  );
  const summary = element("summary", { "data-focus": "others" }, word("otherReplies"));
  return folded(exchange, "isUnfolded", "others hint", summary, element("ul", { class: "others-list" }, ...list));
}

function take(place) {
  if (isBusy(part("send"))) return;
  exchanges.at(-1).pick = place;
  draw();
  part("turns").querySelector(".others > summary").focus();
}

/** A label's name in the language of the page; a label that the model does not name stands for itself. */
function emotionName(label, spoken) {
  const chinese = details("empathetic", spoken).chinese_names ?? {};
  return language() === "zh" && Object.hasOwn(chinese, label) ? chinese[label] : label;
}

/**
 * A bar for each of the likeliest emotions.
 * @param {Object<string, number>} emotions label → probability
 * @param {(label: string) => string} nameOf a label
 * @param {string} chosen the label the reply was made with
 * @param {?(label: string) => void} choose asks for the reply with another emotion; null where it is too late
 */
function emotionChart(emotions, nameOf, chosen, choose) {
  const rows = Object.entries(emotions)
    .sort(([, one], [, other]) => other - one)
    .map(([label, probability]) => element("li", {}, row([label, nameOf(label)], probability, label === chosen, choose)));
  return element("ul", { class: "emotions", "aria-label": word("felt") }, ...rows);
}

/** A choice of all emotions of the model of a language, with "as it felt itself" on top. */
function emotionChoice(spoken, given, choose) {
  const { emotions: known = [] } = details("empathetic", spoken);
  const names = { class: "emotion-choice small", "aria-label": word("otherEmotion"), "data-focus": "emotion-choice" };
  const select = element("select", names);
  const options = known.map((label) => [label, [...new Set([emotionName(label, spoken), label])].join(" ")]);
  fillChoices(select, [["", word(given === null ? "otherEmotion" : "asFelt")], ...options], given ?? "");
  select.addEventListener("change", () => choose(select.value || null));
  return select;
}

function row([label, name], probability, isChosen, choose) {
  const percent = `${Math.round(probability * 100)}%`;
  const bar = setVariable(element("span", { class: "bar", "aria-hidden": "true" }), "--share", probability);
  const parts = [element("span", { class: "emotion-name" }, name), bar, percent];
  const state = { disabled: choose === null, "aria-pressed": String(isChosen), title: word("chooseEmotion", { emotion: name }) };
  const named = isChosen ? "emotion quiet chosen" : "emotion quiet";
  const made = button("", { class: named, "data-focus": `emotion-${label}`, ...state }, () => choose(label));
  made.append(...parts);
  return made;
}
