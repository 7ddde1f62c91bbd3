// The conversation tab: turns, the replies to them, and going back.

import { ApiError, ask } from "../../page/api.js";
import { attentionView } from "../../page/attention.js";
import { button, element, partsOf } from "../../page/elements.js";
import { askFor, isBusy, Sentence } from "../../page/feedback.js";
import { language, onLanguage } from "../../page/language.js";
import { allDetails, details, onModels } from "../../page/models.js";
import { emotionChart, emotionChoice, emotionName } from "./emotion_chart.js";
import { word } from "./words.js";

const part = partsOf("empathetic");
const OPENINGS = {
  en: ["I lost my dog yesterday.", "I finally got the job I wanted!", "Someone keeps stealing my lunch at work."],
  zh: ["昨天我的狗走丢了。", "我终于拿到了想要的工作！", "最近总是睡不好，心里很烦。"],
};
const REPLIES = 5;
const KEY = "paddle_dialog.empathetic.talk";

/**
 * What was said: {text, language, answer, pick, told, attention, isUnfolded, isFelt} a turn; `pick` is the reply taken,
 * `told` the emotion given, the last two what is open. It is kept until the browser's tab is closed.
 */
let exchanges = stored();
let pending = null; // what is said and not yet answered
let error, status;

/** The languages that the server has models for. */
const known = () => allDetails("empathetic").map((one) => one.language ?? "en");

/** The language of the model that is to read a text. */
function languageOf(text) {
  const wanted = /\p{Script=Han}/u.test(text) ? "zh" : "en";
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
  const chosen = languageOf(text);
  part("turn").value = "";
  pending = text;
  draw();
  showLast();
  const exchange = await answered(exchanges, { text, told: null });
  pending = null;
  if (exchange === null) {
    part("turn").value = [text, part("turn").value].filter(Boolean).join("\n"); // nothing that was written is lost
  } else {
    exchanges.push(exchange);
  }
  draw();
  part("turn").focus({ preventScroll: true });
  showLast();
}

const showLast = () => part("turns").lastElementChild?.scrollIntoView({ block: "end" });

/** An exchange with the server's answer; null, with the reason shown, if there is none. */
async function answered(before, { text, told, attention = false }) {
  const chosen = languageOf(text);
  const own = before.filter((one) => one.language === chosen); // what its model can read
  const context = own.flatMap((one) => [one.text, one.answer.predictions[one.pick].text]);
  const request = { context: [...context, text], n_best: REPLIES };
  if (details("empathetic", chosen).language) request.language = chosen;
  if (told !== null) request.emotion = told;
  if (attention) request.attention = true;
  let exchange = null;
  await askFor(
    { buttons: [part("send"), part("undo"), part("reset")], error, status, doing: "listening" },
    (stop) => ask("v1/reply", request, stop),
    (answer) => {
      if (!answer.predictions?.length) throw new ApiError("nothing");
      const emotion = isClear(answer) ? emotionName(answer.emotion, chosen) : word("noClearEmotion");
      status.tell(answer.care ? "cared" : "replied", { emotion, text: answer.predictions[0].text });
      exchange = { text, language: chosen, answer, told, pick: 0, attention };
    },
  );
  return exchange;
}

/** Ask for the last reply again: with another emotion, which is to change it, or with its attention. */
async function again(changes) {
  if (isBusy(part("send"))) return;
  const last = exchanges.at(-1);
  const exchange = await answered(exchanges.slice(0, -1), { text: last.text, told: last.told, ...changes });
  if (exchange === null) return;
  const { predictions } = exchange.answer;
  const said = last.answer.predictions[last.pick].text;
  if ("attention" in changes) exchange.pick = Math.min(last.pick, predictions.length - 1);
  else if (exchange.told !== null) exchange.pick = Math.max(predictions.findIndex(({ text }) => text !== said), 0);
  Object.assign(exchange, { isUnfolded: last.isUnfolded, isFelt: last.isFelt });
  exchanges[exchanges.length - 1] = exchange;
  draw();
}

function undo() {
  if (isBusy(part("undo")) || exchanges.length === 0) return;
  part("turn").value = exchanges.pop().text;
  forget();
}

function reset() {
  if (isBusy(part("reset"))) return;
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

function stored() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return found.filter(({ text, answer, pick }) => typeof text === "string" && answer.predictions[pick].text);
  } catch {
    return []; // forbidden here, or not ours
  }
}

function keep() {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(exchanges));
  } catch {
    // Storage is full or forbidden; the conversation lasts until the page is left.
  }
}

function draw() {
  const focus = document.activeElement?.dataset?.focus;
  const turns = exchanges.flatMap((exchange, place) => turnsOf(exchange, place === exchanges.length - 1 && pending === null));
  if (pending !== null) turns.push(element("li", { class: "turn speaker" }, bubble("you", pending)), waiting());
  part("turns").replaceChildren(...turns);
  const isEmpty = turns.length === 0;
  part("undo").hidden = isEmpty;
  part("reset").hidden = isEmpty;
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
  part("turn").placeholder = word("turnPlaceholder", { example: openings[0] });
  for (const place of ["turn", "openings"]) part(place).lang = tagOf(chosen);
}

const tagOf = (chosen) => (chosen === "zh" ? "zh-Hans" : "en");

/** The language of a text, for fonts and voices. */
const tagOfText = (text) => tagOf(/\p{Script=Han}/u.test(text) ? "zh" : "en");

/** Whether an emotion is clear; the server says null where none is. */
const isClear = (answer) => answer.emotion !== null;

function turnsOf(exchange, isOpen) {
  const { text, answer, pick } = exchange;
  const speaker = element("li", { class: "turn speaker" }, bubble("you", text));
  if (answer.hint) speaker.append(element("p", { class: "told hint", lang: tagOfText(answer.hint) }, answer.hint));
  if (answer.care) return [speaker, caring(answer.predictions[0].text)];
  speaker.append(felt(exchange, isOpen));
  const listener = element("li", { class: "turn listener" }, bubble("listener", answer.predictions[pick].text));
  if (isOpen) listener.append(more(exchange));
  return [speaker, listener];
}

/** The emotion as one word; unfolded, the likeliest ones and the choice of another. */
function felt(exchange, isOpen) {
  const { answer, told, language: chosen } = exchange;
  const choose = isOpen ? (label) => again({ told: label }) : null;
  const name = (label) => emotionName(label, chosen);
  const said = told !== null ? word("told", { emotion: name(told) }) : isClear(answer) ? name(answer.emotion) : word("noClearEmotion");
  const summary = element("summary", { "data-focus": "felt" }, said);
  const inside = [emotionChart(answer.emotions, name, told ?? answer.emotion, choose)];
  if (choose !== null) {
    inside.unshift(element("p", { class: "hint" }, word("feltHint")));
    inside.push(emotionChoice(chosen, told, choose));
  }
  return folded(exchange, "isFelt", "felt", summary, ...inside);
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
  const note = element("p", { class: "origin" }, word("fixedAnswer"));
  return element("li", { class: "turn listener care" }, bubble("listener", text), note);
}

function bubble(who, text) {
  const speaker = element("span", { class: "unseen", lang: document.documentElement.lang }, `${word(who)}: `);
  return element("p", { class: "bubble", lang: tagOfText(text) }, speaker, text);
}

/** The other replies, and what the model looked at. */
function more(exchange) {
  const { answer, pick, attention, language: chosen } = exchange;
  const others = answer.predictions.map(({ text }, place) => [text, place]).filter(([, place]) => place !== pick);
  const list = others.map(([text, place]) =>
    element("li", {}, button(text, { class: "other", lang: tagOfText(text), title: word("takeReply") }, () => take(place))),
  );
  const look = button(
    word(attention ? "hideAttention" : "showAttention"),
    { class: "look", "aria-expanded": String(attention), "data-focus": "look" },
    () => (attention ? hideAttention() : again({ attention: true })),
  );
  const summary = element("summary", { "data-focus": "others" }, word("otherReplies"));
  const inside = [element("ul", {}, ...list), look];
  if (attention) inside.push(attentionView(answer.attention, tagOf(chosen), pick === 0));
  return folded(exchange, "isUnfolded", "others", summary, ...inside);
}

function take(place) {
  if (isBusy(part("send"))) return;
  exchanges.at(-1).pick = place;
  draw();
}

function hideAttention() {
  exchanges.at(-1).attention = false;
  draw();
}
