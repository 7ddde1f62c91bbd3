// Feedback on requests: running, failed, done.

import { ApiError } from "./api.js";
import { byId } from "./elements.js";
import { language, onLanguage, word } from "./language.js";
import { inChinese } from "./refusals.js";

/** A sentence in the page, in the words of a tab or of the page, that keeps its meaning when the language changes. */
export class Sentence {
  constructor(place, words = word) {
    this.place = place;
    this.words = words;
    this.told = null;
    onLanguage(() => this.draw());
  }

  /** Show the word of a name, or hide the sentence for null. */
  tell(name, values = {}) {
    this.told = name === null ? null : { name, values };
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
    this.place.hidden = this.told === null && this.place.classList.contains("error");
    const { name, values } = this.told ?? {};
    const refusal = name === "refused" && language() === "zh" ? inChinese(values.detail) : null;
    this.place.textContent = this.told === null ? "" : (refusal ?? this.words(name, values));
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

/** Do work that can be stopped: where it takes long, its seconds are counted and a button ends it. */
async function whileRunning(doing, work) {
  const ending = new AbortController();
  const [told, stop] = byId("running").children;
  const end = () => ending.abort();
  stop.addEventListener("click", end);
  const started = Date.now();
  const timer = setInterval(() => {
    const seconds = Math.floor((Date.now() - started) / 1000);
    byId("running").hidden = Date.now() - started < LONG;
    told.textContent = `${doing()} ${word("seconds", { seconds })}`;
  }, 500);
  try {
    return await work(ending.signal);
  } finally {
    clearInterval(timer);
    stop.removeEventListener("click", end);
    byId("running").hidden = true;
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
    show(await whileRunning(() => status.words(doing), (stop) => whileBusy(buttons, () => request(stop))));
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
