// The conversation tab: turns, the replies to them, and going back.

import { ApiError, ask } from "../../page/api.js";
import { attentionView } from "../../page/attention.js";
import { button, element, partsOf } from "../../page/elements.js";
import { askFor, isBusy, Sentence } from "../../page/feedback.js";
import { language, onLanguage } from "../../page/language.js";
import { allDetails, details, onModels } from "../../page/models.js";
import { emotionChart, emotionChoice } from "./emotion_chart.js";
import { emotionName } from "./emotion_names.js";
import { word } from "./words.js";

const part = partsOf("empathetic");
const OPENINGS = {
  en: ["I lost my dog yesterday.", "I finally got the job I wanted!", "Someone keeps stealing my lunch at work."],
  zh: ["昨天我的狗走丢了。", "我终于拿到了想要的工作！", "最近总是睡不好，心里很烦。"],
};
const REPLIES = 5;

/**
 * What was said in each language: {text, answer, pick, told, attention} a turn; `pick` is the reply taken, `told` the
 * emotion given.
 */
const conversations = { en: [], zh: [] };
let error, status;

/** The language of the conversation: that of the page, or the only one that the server has a model for. */
function spoken() {
  const known = allDetails("empathetic").map((one) => one.language ?? "en");
  return known.length === 0 || known.includes(language()) ? language() : known[0];
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
  if (isBusy(part("send"))) return;
  if (text === "") {
    error.tell("emptyTurn");
    part("turn").focus();
    return;
  }
  part("turn").value = text; // stays until it is answered
  const chosen = spoken();
  const exchanges = conversations[chosen];
  // A model that must be told the emotion starts from the last one told.
  const { needs_emotion: needsEmotion, emotions = [] } = details("empathetic", chosen);
  const first = emotions.includes("content") ? "content" : emotions[0];
  const told = needsEmotion ? (exchanges.at(-1)?.told ?? first) : null;
  const exchange = await answered(chosen, exchanges, { text, told });
  if (exchange === null) return;
  exchanges.push(exchange);
  part("turn").value = "";
  draw();
  part("turn").focus({ preventScroll: true });
  part("turns").lastElementChild?.scrollIntoView({ block: "nearest", behavior: "smooth" });
}

/** An exchange with the server's answer; null, with the reason shown, if there is none. */
async function answered(chosen, before, { text, told, attention = false }) {
  const context = before.flatMap((one) => [one.text, one.answer.predictions[one.pick].text]);
  const request = { context: [...context, text], n_best: REPLIES };
  if (details("empathetic", chosen).language) request.language = chosen;
  if (told !== null) request.emotion = told;
  if (attention) request.attention = true;
  let exchange = null;
  part("turns").dataset.busy = "true";
  await askFor(
    { buttons: [part("send"), part("undo"), part("reset")], error, status, doing: "listening" },
    () => ask("v1/reply", request),
    (answer) => {
      if (!answer.predictions?.length) throw new ApiError("nothing");
      const emotion = isClear(answer) ? emotionName(answer.emotion, chosen) : word("noClearEmotion");
      status.tell(answer.care ? "cared" : "replied", { emotion, text: answer.predictions[0].text });
      exchange = { text, answer, told, pick: 0, attention };
    },
  );
  delete part("turns").dataset.busy;
  return exchange;
}

/** Ask for the last reply again: with another emotion, or with its attention. */
async function again(changes) {
  if (isBusy(part("send"))) return;
  const chosen = spoken();
  const exchanges = conversations[chosen];
  const last = exchanges.at(-1);
  const exchange = await answered(chosen, exchanges.slice(0, -1), { text: last.text, told: last.told, ...changes });
  if (exchange === null) return;
  if ("attention" in changes) exchange.pick = Math.min(last.pick, exchange.answer.predictions.length - 1);
  exchange.isUnfolded = last.isUnfolded;
  exchanges[exchanges.length - 1] = exchange;
  draw();
}

function undo() {
  if (isBusy(part("undo")) || conversations[spoken()].length === 0) return;
  part("turn").value = conversations[spoken()].pop().text;
  forget();
}

function reset() {
  if (isBusy(part("reset"))) return;
  conversations[spoken()] = [];
  part("turn").value = "";
  forget();
}

function forget() {
  error.tell(null);
  status.tell(null);
  draw();
  part("turn").focus();
}

function draw() {
  const focus = document.activeElement?.dataset?.focus;
  const exchanges = conversations[spoken()];
  const turns = exchanges.flatMap((exchange, place) => turnsOf(exchange, place === exchanges.length - 1));
  part("turns").replaceChildren(...turns);
  part("undo").hidden = exchanges.length === 0;
  part("reset").hidden = exchanges.length === 0;
  part("openings-group").hidden = exchanges.length > 0;
  drawLanguage();
  if (focus) part("turns").querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

/** What depends on the language of the conversation alone. */
function drawLanguage() {
  const openings = OPENINGS[spoken()];
  part("openings").replaceChildren(...openings.map((line) => button(line, { class: "example" }, () => say(line))));
  part("only").hidden = spoken() === language();
  part("only").textContent = word(spoken() === "en" ? "onlyEnglish" : "onlyChinese");
  part("turn").placeholder = word("turnPlaceholder", { example: openings[0] });
  for (const place of ["turn", "openings"]) part(place).lang = tagOf(spoken());
}

const tagOf = (chosen) => (chosen === "zh" ? "zh-Hans" : "en");

/** The language of a text, for fonts and voices. */
const tagOfText = (text) => tagOf(/\p{Script=Han}/u.test(text) ? "zh" : "en");

/** Whether an emotion is clear; the server says null where none is. */
const isClear = (answer) => answer.emotion !== null;

function turnsOf(exchange, isOpen) {
  const { text, answer, pick, told } = exchange;
  const speaker = element("li", { class: "turn speaker" }, bubble("you", text));
  if (answer.hint) speaker.append(element("p", { class: "told hint", lang: tagOfText(answer.hint) }, answer.hint));
  if (answer.care) return [speaker, caring(answer.predictions[0].text)];
  const takesEmotion = details("empathetic", spoken()).takes_emotion !== false;
  const choose = isOpen && takesEmotion ? (label) => again({ told: label }) : null;
  if (isClear(answer)) {
    if (choose !== null) speaker.append(element("p", { class: "felt" }, word("feltHint")));
    speaker.append(emotionChart(answer.emotions, (label) => emotionName(label, spoken()), answer.emotion, choose));
  } else {
    speaker.append(element("p", { class: "felt unclear" }, word("noClearEmotion")));
  }
  if (told !== null) {
    const note = word("told", { emotion: emotionName(told, spoken()) });
    speaker.append(element("p", { class: "told" }, note));
  }
  if (choose !== null) speaker.append(emotionChoice(spoken(), told, choose));
  const reply = answer.predictions[pick];
  const listener = element("li", { class: "turn listener" }, bubble("listener", reply.text), ...originTags(reply));
  if (isOpen) listener.append(...replyTools(exchange));
  return [speaker, listener];
}

/** The fixed answer to somebody who speaks of self-harm: no emotion to correct, no other replies. */
function caring(text) {
  const note = element("p", { class: "origin" }, word("fixedAnswer"));
  return element("li", { class: "turn listener care" }, bubble("listener", text), note);
}

function bubble(who, text) {
  return element("p", { class: "bubble", lang: tagOfText(text) }, element("span", { class: "unseen" }, `${word(who)}: `), text);
}

/** The mark of a reply that was written beforehand, or in the speaker's words; none of the model's own. */
function originTags({ origin }) {
  const marks = {
    written: ["writtenForUs", "writtenForUsMeaning"],
    reflected: ["reflected", "reflectedMeaning"],
  };
  if (!(origin in marks)) return [];
  const [mark, meaning] = marks[origin];
  return [element("p", { class: "origin", title: word(meaning) }, word(mark))];
}

function replyTools(exchange) {
  const { answer, pick, attention } = exchange;
  const tools = [];
  const others = answer.predictions.map((prediction, place) => ({ ...prediction, place })).filter((p) => p.place !== pick);
  if (others.length > 0) {
    const list = others.map(({ place, ...reply }) =>
      element(
        "li",
        {},
        button(reply.text, { class: "other", lang: tagOfText(reply.text), title: word("takeReply") }, () => take(place)),
        ...originTags(reply),
      ),
    );
    const summary = element("summary", {}, `${word("otherReplies")} (${others.length})`);
    const folded = element("details", { class: "others", open: exchange.isUnfolded }, summary, element("ul", {}, ...list));
    folded.addEventListener("toggle", () => {
      exchange.isUnfolded = folded.open;
    });
    tools.push(folded);
  }
  const look = button(
    word(attention ? "hideAttention" : "showAttention"),
    { class: "look", "aria-expanded": String(attention), "data-focus": "look" },
    () => (attention ? hideAttention() : again({ attention: true })),
  );
  tools.push(look);
  if (attention) tools.push(attentionView(answer.attention, tagOf(spoken()), pick === 0));
  return tools;
}

function take(place) {
  if (isBusy(part("send"))) return;
  conversations[spoken()].at(-1).pick = place;
  draw();
}

function hideAttention() {
  conversations[spoken()].at(-1).attention = false;
  draw();
}
