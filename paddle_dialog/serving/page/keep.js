// What can be done with a result, the same in every tab: keep it in this browser, copy it, have it as a picture, print it.

import { byId, button, element, partsOf } from "./elements.js";
import { confirm } from "./feedback.js";
import { onLanguage, word } from "./language.js";
import { linkTo } from "./tabs.js";

const MOST = 300; // that are kept of a tab
const size = new CSSStyleSheet(); // of the paper, which no element can name
document.adoptedStyleSheets.push(size);
window.addEventListener("afterprint", clear);

/**
 * Put the buttons into `#<task>-keeping` and the list of what is kept into `#<task>-kept`.
 * @param {string} task
 * @param {object} tab what is said of a result is `values`, texts by name, as in its address
 * @param {{error: Sentence, status: Sentence}} tab.sentences
 * @param {() => object} tab.shown the values of the result that is shown
 * @param {(values: object) => string} tab.text its lines
 * @param {(values: object) => string} [tab.name] tells it from others; without one nothing is kept
 * @param {(values: object) => void} [tab.show] shows what was kept
 * @param {(signature: string) => Promise<?CanvasRenderingContext2D>} [tab.picture] draws what is shown, signed
 * @param {boolean} [tab.hasPrint] whether there is a button that prints the page
 * @returns {() => void} to be called when another result is shown
 */
export function startKeeping(task, tab) {
  const keeping = new Keeping(task, tab);
  onLanguage(() => keeping.draw());
  keeping.draw();
  return () => keeping.draw();
}

class Keeping {
  constructor(task, tab) {
    Object.assign(this, tab, { task, part: partsOf(task), key: `paddle_dialog.${task}.liked` });
    this.list = this.part("kept");
    this.read();
    window.addEventListener("storage", ({ key }) => {
      if (key !== this.key && key !== null) return; // null: all was cleared
      this.read();
      this.draw();
    });
    const { picture, hasPrint = true } = tab;
    if (picture) this.add("picture", "makePicture", () => this.showPicture());
    if (this.list) this.add("like", "keep", () => this.toggle(this.shown()));
    this.add("copy", "copy", (made) => this.copy(made, this.text(this.shown())));
    this.add("link", "copyLink", (made) => this.copy(made, linkTo(task, this.shown())));
    if (hasPrint) this.add("print", "print", () => window.print());
  }

  add(id, label, act) {
    const made = button("", { id: `${this.task}-${id}`, "data-text": label }, () => act(made));
    this.part("keeping").append(made);
  }

  copy(from, text) {
    copyFrom(from, text, this.sentences.error, this.sentences.status);
  }

  showPicture() {
    const shown = this.shown();
    showPicture({ draw: this.picture, link: linkTo(this.task, shown), file: `${this.name(shown)}.png`, text: this.text(shown) });
  }

  /** Read what the browser has kept, without entries that are none. */
  read() {
    const isText = (text) => typeof text === "string";
    const isKept = (one) => one && Object.values(one).every(isText) && isText(this.name(one));
    try {
      this.kept = JSON.parse(localStorage.getItem(this.key) ?? "[]").filter(isKept).slice(0, MOST);
    } catch {
      this.kept = [];
    }
  }

  placeOf(values) {
    return this.kept.findIndex((one) => this.name(one) === this.name(values));
  }

  /** Keep a result, or keep it no longer. */
  toggle(values) {
    const { error, status } = this.sentences;
    const place = this.placeOf(values);
    if (place >= 0) this.kept.splice(place, 1);
    else this.kept = [values, ...this.kept].slice(0, MOST);
    status.tell(place >= 0 ? "keptNoMore" : "keptNow");
    try {
      localStorage.setItem(this.key, JSON.stringify(this.kept));
      error.tell(null);
    } catch {
      error.tell("keptUnsaved"); // forbidden here, or full
    }
    this.draw();
  }

  drop(values) {
    const place = this.placeOf(values);
    this.toggle(values);
    const left = this.list.querySelectorAll(".remove");
    (left[Math.min(place, left.length - 1)] ?? byId(`tab-${this.task}`)).focus();
  }

  save() {
    const text = `${this.kept.map(this.text).join("\n\n")}\n`;
    saveFile(new Blob([text], { type: "text/plain" }), `${word("kept")}.txt`);
  }

  draw() {
    for (const made of this.part("keeping").querySelectorAll("[data-text]")) made.textContent = word(made.dataset.text);
    if (this.list === null) return;
    const shown = this.shown();
    this.part("like").textContent = word(shown && this.placeOf(shown) >= 0 ? "keepNoMore" : "keep");
    const rows = this.kept.map((one) => {
      const again = button("", { class: "kept-text", lang: "zh-Hans", title: word("showKept") }, () => this.show(one));
      again.append(...this.text(one).split("\n").slice(0, 3).map((line) => element("span", {}, line)));
      const label = word("removeKept", { name: this.name(one) });
      const remove = button("×", { class: "remove", "aria-label": label, title: label }, () => this.drop(one));
      return element("li", {}, again, remove);
    });
    const save = button(word("saveText"), { class: "save-text" }, () => this.save());
    this.list.replaceChildren(element("h2", {}, word("kept")), element("ol", { class: "kept-list" }, ...rows), save);
    this.list.hidden = this.kept.length === 0;
  }
}

/** Copy a text and say so on a button, or say why not. */
export async function copyFrom(from, text, error, status) {
  if (!(await copyText(text))) return error.tell("copyFailed");
  error.tell(null);
  status.tell("copied");
  const own = from.textContent;
  confirm(from, () => word("copied"), () => (from.dataset.text ? word(from.dataset.text) : own));
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const before = document.activeElement;
  const field = element("textarea", { class: "unseen", readonly: true });
  field.value = text;
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
    before?.focus();
  }
}

/** Have the browser save a blob under a name. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * Open the print dialog for sheets of one size.
 * @param {Element[]} sheets drawings as large as the paper
 * @param {{width: number, height: number}} paper in millimetres
 */
export function printSheets(sheets, { width, height }) {
  size.replaceSync(`@page { size: ${Number(width)}mm ${Number(height)}mm; margin: 0; }`);
  byId("sheets").replaceChildren(...sheets);
  document.body.dataset.printed = "sheets";
  window.print();
}

function clear() {
  size.replaceSync("");
  byId("sheets").replaceChildren();
  delete document.body.dataset.printed;
}

const pictured = (name) => byId(`picture-${name}`);
let current, drawn; // the picture that is shown, and the promise of its file

/** Connect the window of pictures: whoever likes signs one before it is saved or sent. */
export function startPictures() {
  pictured("name").addEventListener("input", ({ isComposing }) => isComposing || redraw());
  pictured("name").addEventListener("compositionend", redraw);
  pictured("save").addEventListener("click", () => handOver((file) => saveFile(file, file.name)));
  pictured("share").addEventListener("click", () =>
    handOver((file) => navigator.share({ files: [file], text: `${current.text}\n${current.link}` })),
  );
  pictured("close").addEventListener("click", () => byId("picture").close());
}

function showPicture(picture) {
  current = picture;
  pictured("image").removeAttribute("src");
  pictured("share").hidden = true;
  byId("picture").showModal();
  redraw();
}

/** Draw the picture anew; only the newest drawing counts. */
function redraw() {
  const drawing = paint(current, pictured("name").value.trim());
  drawn = drawing;
  pictured("error").hidden = true;
  pictured("save").setAttribute("aria-busy", "true");
  drawing.then((file) => {
    if (drawing !== drawn) return;
    pictured("save").removeAttribute("aria-busy");
    pictured("save").hidden = pictured("image").hidden = file === null;
    if (file === null) return fail("pictureFailed");
    URL.revokeObjectURL(pictured("image").src);
    pictured("image").src = URL.createObjectURL(file);
    pictured("image").alt = current.text;
    pictured("share").hidden = !navigator.canShare?.({ files: [file] });
  });
}

async function paint({ draw, file }, signature) {
  const context = await draw(signature);
  const blob = context && (await new Promise((done) => context.canvas.toBlob(done, "image/png")));
  return blob && new File([blob], file, { type: "image/png" });
}

/** Do something with the picture as soon as it is drawn. */
async function handOver(act) {
  const file = await drawn;
  if (file === null) return;
  try {
    await act(file);
  } catch (error) {
    if (error.name !== "AbortError") fail("shareFailed"); // else somebody thought better of it
  }
}

function fail(name) {
  pictured("error").textContent = word(name);
  pictured("error").hidden = false;
}
