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

/** Mark buttons as busy while work is done; they keep the focus, and clicks on them do nothing. */
async function whileBusy(buttons, work) {
  for (const button of buttons) {
    button.setAttribute("aria-disabled", "true");
    button.setAttribute("aria-busy", "true");
  }
  try {
    return await work();
  } finally {
    for (const button of buttons) {
      button.removeAttribute("aria-disabled");
      button.removeAttribute("aria-busy");
    }
  }
}

const LONG = 2000; // ms, after which somebody may want to stop

/** Do work that can be stopped: where it takes long, its seconds are counted below a button, and another one ends it. */
async function whileRunning(doing, asked, work) {
  const ending = new AbortController();
  const seconds = element("span");
  const stop = button(word("stop"), {}, () => ending.abort());
  const bar = element("p", { class: "running" }, seconds, stop);
  const started = Date.now();
  const timer = setInterval(() => {
    if (Date.now() - started < LONG) return;
    seconds.textContent = `${doing()} ${word("seconds", { seconds: Math.floor((Date.now() - started) / 1000) })}`;
    if (!bar.isConnected) asked.closest(".ask-row, .actions").after(bar);
  }, 500);
  try {
    return await work(ending.signal);
  } finally {
    clearInterval(timer);
    const hadFocus = document.activeElement === stop;
    bar.remove();
    if (hadFocus) asked.focus();
  }
}

/** Whether a button is busy. */
export const isBusy = (button) => button.getAttribute("aria-busy") === "true";

/**
 * Ask the server for the user: buttons are busy meanwhile, the status says what is happening, long work can be stopped, and a failure is shown.
 * @param {{buttons: HTMLElement[], error: Sentence, status: Sentence, doing: string}} place `doing` is a word
 * @param {(stop: AbortSignal) => Promise<object>} request
 * @param {(answer: object) => void} show draws the answer and sets the status; it throws if it cannot
 */
export async function askFor({ buttons, error, status, doing }, request, show) {
  error.tell(null);
  status.tell(doing);
  try {
    show(await whileRunning(() => status.words(doing), buttons[0], (stop) => whileBusy(buttons, () => request(stop))));
  } catch (failure) {
    status.tell(null);
    if (failure.word !== "stopped") error.tellError(failure);
  }
}

/** Show another text on a button for a moment, then its own; both are functions, as the language may change. */
export function confirm(button, done, own) {
  button.textContent = done();
  setTimeout(() => {
    button.textContent = own();
  }, 2000);
}
