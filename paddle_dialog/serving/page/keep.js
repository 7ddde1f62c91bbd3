// What can be done with a result, the same in every tab: keep it in this browser, copy it, have it as a picture, print it.

import { byId, button, element, partsOf } from "./elements.js";
import { Sentence } from "./feedback.js";
import { onLanguage, word } from "./language.js";
import { recall, remember } from "./memory.js";
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
 * @param {(signature: string) => Promise<HTMLCanvasElement>} [tab.picture] draws what is shown, signed
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
    this.kept = recall("localStorage", this.key) ?? [];
    window.addEventListener("storage", ({ key }) => {
      if (key !== this.key) return;
      this.kept = recall("localStorage", this.key) ?? [];
      this.draw();
    });
    const { picture, hasPrint = true } = tab;
    if (picture) this.add("picture", "makePicture", () => showPicture(this));
    if (this.list) this.add("like", "keep", () => this.toggle(this.shown()));
    this.add("copy", "copy", (made) => copyFrom(made, this.text(this.shown()), this.sentences));
    this.add("link", "copyLink", (made) => copyFrom(made, linkTo(task, this.shown()), this.sentences));
    if (hasPrint) this.add("print", "print", () => window.print());
  }

  add(id, label, act) {
    const made = button("", { id: `${this.task}-${id}`, "data-text": label }, () => act(made));
    this.part("keeping").append(made);
  }

  placeOf(values) {
    return this.kept.findIndex((one) => this.name(one) === this.name(values));
  }

  /** Keep a result, or keep it no longer. */
  toggle(values) {
    const place = this.placeOf(values);
    if (place >= 0) this.kept.splice(place, 1);
    else this.kept = [values, ...this.kept].slice(0, MOST);
    this.sentences.status.tell(place >= 0 ? "keptNoMore" : "keptNow");
    this.sentences.error.tell(remember("localStorage", this.key, this.kept) ? null : "keptUnsaved");
    this.draw();
  }

  drop(values) {
    const place = this.placeOf(values);
    this.toggle(values);
    const left = this.list.querySelectorAll(".remove");
    (left[Math.min(place, left.length - 1)] ?? byId(`tab-${this.task}`)).focus();
  }

  draw() {
    if (this.list === null) return;
    const shown = this.shown();
    this.part("like").textContent = word(shown && this.placeOf(shown) >= 0 ? "keepNoMore" : "keep");
    const rows = this.kept.map((one) => {
      const again = button("", { class: "kept-text lines", lang: "zh-Hans", title: word("showKept") }, () => this.show(one));
      again.append(...this.text(one).split("\n").slice(0, 3).map((line) => element("span", {}, line)));
      const label = word("removeKept", { name: this.name(one) });
      const remove = button("×", { class: "remove", "aria-label": label, title: label }, () => this.drop(one));
      return element("li", {}, again, remove);
    });
    const save = button(word("saveText"), { class: "save-text" }, () => {
      saveText(this.kept.map(this.text).join("\n\n"), word("kept"));
    });
    this.list.replaceChildren(element("h2", {}, word("kept")), element("ol", { class: "kept-list cards" }, ...rows), save);
    this.list.hidden = this.kept.length === 0;
  }
}

/** Copy a text and say so for a moment on the button for it, or say why not. */
export async function copyFrom(from, text, { error, status }) {
  const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (!isCopied && !copySelected(from, text)) return error.tell("copyFailed");
  error.tell(null);
  status.tell("copied");
  const own = from.textContent;
  from.textContent = word("copied");
  setTimeout(() => (from.textContent = from.dataset.text ? word(from.dataset.text) : own), 2000);
}

/** Without TLS a page has no clipboard, and a text is copied from a field. */
function copySelected(from, text) {
  const field = element("textarea", { class: "unseen", readonly: true }, text);
  from.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  from.focus();
  return isCopied;
}

/** Have the browser save a text under a name. */
export const saveText = (text, name) => saveFile(new Blob([text, "\n"], { type: "text/plain" }), `${name}.txt`);

function saveFile(blob, name) {
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
  window.print();
}

function clear() {
  size.replaceSync("");
  byId("sheets").replaceChildren();
}

const pictured = partsOf("picture");
const failed = new Sentence(pictured("error"));
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

function showPicture({ task, shown, name, text, picture }) {
  const values = shown();
  current = { draw: picture, link: linkTo(task, values), file: `${name(values)}.png`, text: text(values) };
  pictured("image").removeAttribute("src");
  pictured("share").hidden = true;
  byId("picture").showModal();
  redraw();
}

/** Draw the picture anew; only the newest drawing counts. */
function redraw() {
  const drawing = paint(current, pictured("name").value.trim()).catch(() => null);
  drawn = drawing;
  failed.tell(null);
  pictured("save").setAttribute("aria-busy", "true");
  drawing.then((file) => {
    if (drawing !== drawn) return;
    pictured("save").removeAttribute("aria-busy");
    pictured("save").hidden = pictured("image").hidden = file === null;
    if (file === null) return failed.tell("pictureFailed");
    URL.revokeObjectURL(pictured("image").src);
    pictured("image").src = URL.createObjectURL(file);
    pictured("image").alt = current.text;
    pictured("share").hidden = !navigator.canShare?.({ files: [file] });
  });
}

async function paint({ draw, file }, signature) {
  const canvas = await draw(signature);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  return blob && new File([blob], file, { type: "image/png" });
}

/** Do something with the picture as soon as it is drawn. */
async function handOver(act) {
  const file = await drawn;
  if (file === null) return;
  try {
    await act(file);
  } catch (error) {
    if (error.name !== "AbortError") failed.tell("shareFailed"); // else somebody thought better of it
  }
}
