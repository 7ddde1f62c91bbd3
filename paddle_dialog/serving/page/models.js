// The models of the server: their cards, and what a tab learns from its own.

import { ask, useKey } from "./api.js";
import { byId, element } from "./elements.js";
import { Sentence } from "./feedback.js";
import { onLanguage, word } from "./language.js";
import { tabName } from "./tabs.js";

const learners = [];
let cards = null; // until the server has answered

/** What the card of each of a task's models says, one a language where there are several. */
export const allDetails = (task) => (cards ?? []).filter((card) => card.task === task).map((card) => card.details);

/** What a task's model card says, e.g. `longest_line`, of the model of a language if there is one; empty until the
 * server has answered. */
export function details(task, language) {
  const all = allDetails(task);
  return all.find((one) => one.language === language) ?? all[0] ?? {};
}

/** What the cards say of an address of the server; null where the server has none. */
export function offered(path) {
  const card = cards?.find((one) => one.path === path || one.further?.[path]);
  return card?.further?.[path] ?? card?.details ?? null;
}

/** Whether the server has answered. */
export const isKnown = () => cards !== null;

/** Call `learn` once, when the models are known. */
export function onModels(learn) {
  learners.push(learn);
}

/** Ask the server for its models until it answers. */
export function startModels() {
  const box = byId("server-problem");
  const problem = new Sentence(box.querySelector("p"));
  const keyForm = byId("key-form");

  async function load() {
    try {
      cards = (await ask("v1/models")).models ?? [];
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
    showCards();
    learners.splice(0).forEach((learn) => learn());
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

function showCards() {
  if (cards === null) return;
  const shown = cards.map(({ task, family, parameters, details: { language } }) => {
    const count = Number(parameters).toLocaleString(document.documentElement.lang);
    const name = allDetails(task).length > 1 ? `${tabName(task)} (${language})` : tabName(task);
    return element("li", {}, word("model", { task: name, family, parameters: count }));
  });
  byId("models-list").replaceChildren(...shown);
  byId("models").hidden = false;
}
