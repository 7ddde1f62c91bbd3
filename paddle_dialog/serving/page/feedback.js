// What the page tells of a request: that it runs, that it failed, that something is done.

import { ApiError } from "./api.js";
import { onLanguage, word } from "./language.js";

/** A sentence in the page that keeps its meaning when the language changes. */
export class Sentence {
  constructor(place) {
    this.place = place;
    this.told = null;
    onLanguage(() => this.draw());
  }

  /** Tells `words.js[name]`, or hides the sentence for null. */
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
    this.place.textContent = this.told === null ? "" : word(this.told.name, this.told.values);
  }
}

/** Marks buttons as busy while work is done; they keep the focus, and clicks on them do nothing. */
export async function whileBusy(buttons, work) {
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

/** Shows another text on a button for a moment. */
export function confirm(button, name, own) {
  button.textContent = word(name);
  setTimeout(() => {
    button.textContent = word(own);
  }, 2000);
}
