// The conversation tab: turns, the replies to them, and going back.

import { answerTurn } from "./api.js";
import { attentionView } from "./attention.js";
import { byId, button, element } from "./elements.js";
import { emotionName } from "./emotion_names.js";
import { emotionChart, emotionChoice } from "./emotion_chart.js";
import { isBusy, Sentence, whileBusy } from "./feedback.js";
import { language, onLanguage, word } from "./language.js";
import { details, onModels } from "./models.js";

const OPENINGS = [
  "I lost my dog yesterday.",
  "I finally got the job I wanted!",
  "Someone keeps stealing my lunch at work.",
];
const REPLIES = 5;

/** What was said: {text, answer, pick, told, attention} a turn; `pick` is the reply taken, `told` the emotion given. */
let exchanges = [];
let error, status;

/** Connects the tab. */
export function startConversation() {
  error = new Sentence(byId("conversation-error"));
  status = new Sentence(byId("conversation-status"));
  byId("turn-form").addEventListener("submit", (event) => {
    event.preventDefault();
    say(byId("turn").value.trim());
  });
  byId("turn").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("turn-form").requestSubmit();
  });
  byId("undo").addEventListener("click", undo);
  byId("reset").addEventListener("click", reset);
  byId("openings").append(...OPENINGS.map((line) => button(line, { class: "example" }, () => say(line))));
  onLanguage(draw);
  onModels(draw);
  draw();
}

async function say(text) {
  if (isBusy(byId("send"))) return;
  if (text === "") {
    error.tell("emptyTurn");
    byId("turn").focus();
    return;
  }
  byId("turn").value = text; // stays until it is answered
  // A model that must be told the emotion starts from the last one told.
  const told = details("empathetic").needs_emotion ? (exchanges.at(-1)?.told ?? "content") : null;
  const exchange = await answered(exchanges, { text, told });
  if (exchange === null) return;
  exchanges.push(exchange);
  byId("turn").value = "";
  draw();
  byId("turn").focus({ preventScroll: true });
  byId("turns").lastElementChild.scrollIntoView({ block: "nearest", behavior: "smooth" });
}

/** An exchange with the server's answer, or null with the reason told. */
async function answered(before, { text, told, attention = false }) {
  const context = before.flatMap((one) => [one.text, one.answer.predictions[one.pick].text]);
  const request = { context: [...context, text], n_best: REPLIES };
  if (told !== null) request.emotion = told;
  if (attention) request.attention = true;
  error.tell(null);
  status.tell("listening");
  byId("turns").dataset.busy = "true";
  try {
    const answer = await whileBusy([byId("send"), byId("undo"), byId("reset")], () => answerTurn(request));
    if (!answer.predictions?.length) {
      status.tell(null);
      error.tell("nothing");
      return null;
    }
    const emotion = isClear(answer) ? emotionName(answer.emotion, language()) : word("noClearEmotion");
    status.tell("replied", { emotion, text: answer.predictions[0].text });
    return { text, answer, told, pick: 0, attention };
  } catch (failure) {
    status.tell(null);
    error.tellError(failure);
    return null;
  } finally {
    delete byId("turns").dataset.busy;
  }
}

/** Has the last reply made anew: as if another emotion were felt, or with its attention. */
async function again(changes) {
  if (isBusy(byId("send"))) return;
  const last = exchanges.at(-1);
  const exchange = await answered(exchanges.slice(0, -1), { text: last.text, told: last.told, ...changes });
  if (exchange === null) return;
  if ("attention" in changes) exchange.pick = Math.min(last.pick, exchange.answer.predictions.length - 1);
  exchange.isUnfolded = last.isUnfolded;
  exchanges[exchanges.length - 1] = exchange;
  draw();
}

function undo() {
  if (isBusy(byId("undo")) || exchanges.length === 0) return;
  byId("turn").value = exchanges.pop().text;
  forget();
}

function reset() {
  if (isBusy(byId("reset"))) return;
  exchanges = [];
  byId("turn").value = "";
  forget();
}

function forget() {
  error.tell(null);
  status.tell(null);
  draw();
  byId("turn").focus();
}

function draw() {
  const focus = document.activeElement?.dataset?.focus;
  byId("turns").replaceChildren(...exchanges.flatMap((exchange, place) => turnsOf(exchange, isLast(place))));
  byId("undo").hidden = exchanges.length === 0;
  byId("reset").hidden = exchanges.length === 0;
  byId("openings-group").hidden = exchanges.length > 0;
  if (focus) byId("turns").querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

/** Whether one emotion is likelier than the others by far; the server says null where none is. */
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
  if (attention) tools.push(attentionView(answer.attention, pick));
  return tools;
}

function take(place) {
  if (isBusy(byId("send"))) return;
  exchanges.at(-1).pick = place;
  draw();
}

function hideAttention() {
  exchanges.at(-1).attention = false;
  draw();
}
