// What the server offers: a tab without its model says so, and the rest learns the model's limits.

import { models, useKey } from "./api.js";
import { byId, element } from "./elements.js";
import { Sentence } from "./feedback.js";
import { onLanguage, word } from "./language.js";

const TABS = { couplet: "couplet", empathetic: "conversation" };
const NAMES = { couplet: "tabCouplet", empathetic: "tabConversation" };
const known = {};
const learners = [];
let cards = null;

/** What a task's model card tells, e.g. `longest_line`; empty until the server has answered. */
export const details = (task) => known[task] ?? {};

/** Calls `learn` when the models are known. */
export function onModels(learn) {
  learners.push(learn);
}

/** Asks the server for its models, until it has told them. */
export function startModels() {
  const box = byId("server-problem");
  const problem = new Sentence(box.querySelector("p"));
  const keyForm = byId("key-form");

  async function load() {
    try {
      cards = (await models()).models ?? [];
    } catch (error) {
      problem.tellError(error);
      box.hidden = false;
      keyForm.hidden = error.word !== "keyWanted";
      if (error.word === "busy") {
        problem.tell("loading");
        setTimeout(load, error.values.seconds * 1000);
      }
      return;
    }
    box.hidden = true;
    problem.tell(null);
    for (const card of cards) known[card.task] = card.details ?? {};
    showTasks();
    showCards();
    learners.forEach((learn) => learn());
  }

  byId("server-retry").addEventListener("click", load);
  keyForm.addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(byId("key").value.trim());
    load();
  });
  onLanguage(showCards);
  load();
}

function showTasks() {
  for (const [task, panel] of Object.entries(TABS)) {
    const isServed = Object.hasOwn(known, task);
    byId(panel).querySelector(".absent").hidden = isServed;
    byId(panel).querySelector(".task").hidden = !isServed;
  }
}

function showCards() {
  if (cards === null) return;
  const shown = cards
    .filter((card) => Object.hasOwn(NAMES, card.task))
    .map((card) => {
      const parameters = Number(card.parameters).toLocaleString(document.documentElement.lang);
      const told = word("model", { task: word(NAMES[card.task]), family: card.family, parameters });
      return element("span", {}, told);
    });
  byId("models").replaceChildren(...shown, element("a", { href: "docs" }, word("apiDocs")));
}
