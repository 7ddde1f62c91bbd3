// Feedback on requests: running, failed, done.

import { ApiError } from "./api.js";
import { button, element } from "./elements.js";
import { onLanguage, word } from "./language.js";

/** A sentence in the page, in the words of a tab or of the page, that keeps its meaning when the language changes. */
export class Sentence {
  constructor(place, words = word) {
    this.place = place;
    this.words = words;
    this.said = null;
    onLanguage(() => this.draw());
  }

  /** Show the word of a name, or hide the sentence for null. */
  tell(name, values = {}) {
    this.said = name === null ? null : { name, values };
    this.draw();
  }

  /** Show an error; one that is not of a request arose in drawing an answer that breaks the API. */
  tellError(error) {
    if (error instanceof ApiError) {
      this.tell(error.word, error.values);
    } else {
      this.tell("unreadable");
      reportError(error);
    }
  }

  draw() {
    this.place.hidden = this.said === null && this.place.classList.contains("error");
    this.place.textContent = this.said === null ? "" : this.words(this.said.name, this.said.values);
  }
}

const LONG = 2000; // ms, after which somebody may want to stop

/** Count the seconds of long work below its button, beside one that stops it; returns what ends the counting. */
function countSeconds(doing, asked, abort) {
  const seconds = element("span");
  const stop = button(word("stop"), {}, abort);
  const bar = element("p", { class: "running" }, seconds, stop);
  const started = Date.now();
  const timer = setInterval(() => {
    if (Date.now() - started < LONG) return;
    seconds.textContent = `${doing()} ${word("seconds", { seconds: Math.floor((Date.now() - started) / 1000) })}`;
    if (!bar.isConnected) asked.closest(".ask-row, .actions").after(bar);
  }, 500);
  return () => {
    clearInterval(timer);
    const hadFocus = document.activeElement === stop;
    bar.remove();
    if (hadFocus) asked.focus();
  };
}

/** Whether a button is busy. */
export const isBusy = (button) => button.ariaBusy === "true";

/**
 * Ask the server for the user: buttons are busy meanwhile, which keep the focus, the status says what is happening, long
 * work can be stopped, and a failure is shown.
 * @param {{buttons: HTMLElement[], error: Sentence, status: Sentence, doing: string}} place `doing` is a word
 * @param {(stop: AbortSignal) => Promise<object>} request
 * @param {(answer: object) => void} show draws the answer and sets the status; it throws if it cannot
 */
export async function askFor({ buttons, error, status, doing }, request, show) {
  error.tell(null);
  status.tell(doing);
  const ending = new AbortController();
  const stopCounting = countSeconds(() => status.words(doing), buttons[0], () => ending.abort());
  const mark = (state) => buttons.forEach((one) => Object.assign(one, { ariaBusy: state, ariaDisabled: state }));
  mark("true");
  const finish = () => {
    mark(null);
    stopCounting();
  };
  try {
    show(await request(ending.signal).finally(finish));
  } catch (failure) {
    status.tell(null);
    if (failure.word !== "stopped") error.tellError(failure);
  }
}
