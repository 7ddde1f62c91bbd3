// What the page tells of a request: that it runs, that it failed, that something is done.

import { ApiError } from "./api.js";
import { onLanguage, word } from "./language.js";

/** A sentence in the page, in the words of a tab or of the page, that keeps its meaning when the language changes. */
export class Sentence {
  constructor(place, words = word) {
    this.place = place;
    this.words = words;
    this.told = null;
    onLanguage(() => this.draw());
  }

  /** Tells the word of a name, or hides the sentence for null. */
  tell(name, values = {}) {
    this.told = name === null ? null : { name, values };
    this.draw();
  }

  /** Tells an error; one that is not of a request came up in drawing an answer that is not as the API says. */
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
    this.place.textContent = this.told === null ? "" : this.words(this.told.name, this.told.values);
  }
}

/** Marks buttons as busy while work is done; they keep the focus, and clicks on them do nothing. */
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

/** Whether a button is busy. */
export const isBusy = (button) => button.getAttribute("aria-busy") === "true";

/**
 * Asks the server for the user: buttons are busy meanwhile, the status says what is done, and a failure is told.
 * @param {{buttons: HTMLElement[], error: Sentence, status: Sentence, doing: string}} place `doing` is a word
 * @param {() => Promise<object>} request
 * @param {(answer: object) => void} show draws the answer and tells the status; it throws where there is none to draw
 */
export async function askFor({ buttons, error, status, doing }, request, show) {
  error.tell(null);
  status.tell(doing);
  try {
    show(await whileBusy(buttons, request));
  } catch (failure) {
    status.tell(null);
    error.tellError(failure);
  }
}

/** Shows another text on a button for a moment, then its own; both are functions, as the language may change. */
export function confirm(button, done, own) {
  button.textContent = done();
  setTimeout(() => {
    button.textContent = own();
  }, 2000);
}
