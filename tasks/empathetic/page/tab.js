// The conversation tab: turns, the replies to them, and going back.

import { ApiError, ask } from "../../page/api.js";
import { attentionView } from "../../page/attention.js";
import { button, element, partsOf } from "../../page/elements.js";
import { askFor, isBusy, Sentence } from "../../page/feedback.js";
import { language, onLanguage } from "../../page/language.js";
import { details, onModels } from "../../page/models.js";
import { emotionChart, emotionChoice } from "./emotion_chart.js";
import { emotionName } from "./emotion_names.js";
import { word } from "./words.js";

const part = partsOf("empathetic");
const OPENINGS = [
  "I lost my dog yesterday.",
  "I finally got the job I wanted!",
  "Someone keeps stealing my lunch at work.",
];
const REPLIES = 5;

/** What was said: {text, answer, pick, told, attention} a turn; `pick` is the reply taken, `told` the emotion given. */
let exchanges = [];
let error, status;

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
  part("openings").append(...OPENINGS.map((line) => button(line, { class: "example" }, () => say(line))));
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
  // A model that must be told the emotion starts from the last one told.
  const told = details("empathetic").needs_emotion ? (exchanges.at(-1)?.told ?? "content") : null;
  const exchange = await answered(exchanges, { text, told });
  if (exchange === null) return;
  exchanges.push(exchange);
  part("turn").value = "";
  draw();
  part("turn").focus({ preventScroll: true });
  part("turns").lastElementChild.scrollIntoView({ block: "nearest", behavior: "smooth" });
}

/** An exchange with the server's answer; null, with the reason shown, if there is none. */
async function answered(before, { text, told, attention = false }) {
  const context = before.flatMap((one) => [one.text, one.answer.predictions[one.pick].text]);
  const request = { context: [...context, text], n_best: REPLIES };
  if (told !== null) request.emotion = told;
  if (attention) request.attention = true;
  let exchange = null;
  part("turns").dataset.busy = "true";
  await askFor(
    { buttons: [part("send"), part("undo"), part("reset")], error, status, doing: "listening" },
    () => ask("v1/reply", request),
    (answer) => {
      if (!answer.predictions?.length) throw new ApiError("nothing");
      const emotion = isClear(answer) ? emotionName(answer.emotion, language()) : word("noClearEmotion");
      status.tell("replied", { emotion, text: answer.predictions[0].text });
      exchange = { text, answer, told, pick: 0, attention };
    },
  );
  delete part("turns").dataset.busy;
  return exchange;
}

/** Ask for the last reply again: with another emotion, or with its attention. */
async function again(changes) {
  if (isBusy(part("send"))) return;
  const last = exchanges.at(-1);
  const exchange = await answered(exchanges.slice(0, -1), { text: last.text, told: last.told, ...changes });
  if (exchange === null) return;
  if ("attention" in changes) exchange.pick = Math.min(last.pick, exchange.answer.predictions.length - 1);
  exchange.isUnfolded = last.isUnfolded;
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

function draw() {
  const focus = document.activeElement?.dataset?.focus;
  part("turns").replaceChildren(...exchanges.flatMap((exchange, place) => turnsOf(exchange, isLast(place))));
  part("undo").hidden = exchanges.length === 0;
  part("reset").hidden = exchanges.length === 0;
  part("openings-group").hidden = exchanges.length > 0;
  part("people").hidden = !details("empathetic").stored_replies;
  if (focus) part("turns").querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

/** Whether an emotion is clear; the server says null where none is. */
const isClear = (answer) => answer.emotion !== null;

const isLast = (place) => place === exchanges.length - 1;

function turnsOf(exchange, isOpen) {
  const { text, answer, pick, told } = exchange;
  const choose = isOpen && details("empathetic").takes_emotion !== false ? (label) => again({ told: label }) : null;
  const speaker = element("li", { class: "turn speaker" }, bubble("you", text));
  if (isClear(answer)) {
    if (choose !== null) speaker.append(element("p", { class: "felt" }, word("feltHint")));
    speaker.append(emotionChart(answer.emotions, answer.emotion, choose));
  } else {
    speaker.append(element("p", { class: "felt unclear" }, word("noClearEmotion")));
  }
  if (told !== null) {
    const note = word("told", { emotion: emotionName(told, language()) });
    speaker.append(element("p", { class: "told" }, note));
  }
  if (choose !== null) speaker.append(emotionChoice(told, choose));
  const reply = answer.predictions[pick];
  const listener = element("li", { class: "turn listener" }, bubble("listener", reply.text), ...originTags(reply));
  if (isOpen) listener.append(...replyTools(exchange));
  return [speaker, listener];
}

function bubble(who, text) {
  return element("p", { class: "bubble", lang: "en" }, element("span", { class: "unseen" }, `${word(who)}: `), text);
}

/** The mark of a reply that a person wrote; none of the model's own. */
function originTags({ origin, similarity }) {
  if (origin !== "person") return [];
  const tag = word("fromPerson", { similarity: similarity.toFixed(2).replace("-", "−") });
  return [element("p", { class: "origin", title: word("fromPersonMeaning") }, tag)];
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
        button(reply.text, { class: "other", lang: "en", title: word("takeReply") }, () => take(place)),
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
  if (attention) tools.push(attentionView(answer.attention, "en", pick === 0));
  return tools;
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
