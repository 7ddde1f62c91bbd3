// A form with one text: what somebody writes, an example or a link is sent to the server, and the answer shown.

import { button, partsOf } from "./elements.js";
import { askFor, isBusy, Sentence } from "./feedback.js";
import { onModels } from "./models.js";
import { onAddress, setAddress } from "./tabs.js";

/**
 * Connect the parts `form`, `ask`, `examples`, `error` and `status` of a tab.
 * @param {string} task
 * @param {object} tab
 * @param {(name: string) => string} tab.word its words; the word `empty` is said where there is no text
 * @param {string} tab.doing the word that is said until there is an answer
 * @param {() => string[]} tab.examples called when the models are known
 * @param {(text: string, stop: AbortSignal) => Promise<object>} tab.request
 * @param {(answer: object) => void} tab.show draws the answer and sets the status
 * @returns {{error: Sentence, status: Sentence}}
 */
export function startForm(task, { word, doing, examples, request, show }) {
  const part = partsOf(task);
  const field = part("form").querySelector("input, textarea");
  const sentences = { error: new Sentence(part("error"), word), status: new Sentence(part("status"), word) };
  const send = () => {
    if (isBusy(part("ask"))) return;
    const text = field.value.trim();
    if (text === "") {
      sentences.error.tell("empty");
      field.focus();
      return;
    }
    const answered = (answer) => {
      setAddress(task, { s: text });
      show(answer);
    };
    askFor({ buttons: [part("ask")], ...sentences, doing }, (stop) => request(text, stop), answered);
  };
  const take = (text) => {
    field.value = text;
    send();
  };
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  onModels(() => {
    part("examples").append(...examples().map((text) => button(text, { class: "example" }, () => take(text))));
    onAddress(task, ({ s }) => s && take(s));
  });
  return sentences;
}
