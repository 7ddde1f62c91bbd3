// The poem tab: asks for a poem and hangs it as a scroll, written downwards from the right, on the page and in a picture.

import { ask } from "../../page/api.js";
import { drawPicture, FONTS, handFor, layPaper, mount, onFonts, SCENE, stamp, unmarked, writeDown } from "../../page/brush.js";
import { scriptOf } from "../../page/characters.js";
import { button, element, fillChoices, partsOf, setVariable } from "../../page/elements.js";
import { askFor, isBusy, Sentence } from "../../page/feedback.js";
import { startKeeping } from "../../page/keep.js";
import { onLanguage } from "../../page/language.js";
import { onAddress, setAddress } from "../../page/tabs.js";
import { word } from "./words.js";

const part = partsOf("poem");
const FORMS = ["七绝", "五绝", "七律", "五律", "any"];
const USES = ["title", "begin", "acrostic"];
const EXAMPLES = [
  { form: "七绝", use: "title", text: "秋夜" },
  { form: "五律", use: "begin", text: "明月松间照" },
  { form: "七绝", use: "acrostic", text: "春夏秋冬" },
  { form: "any", use: "begin", text: "大江东去" },
];
const UNTITLED = "无题";
const MAX_CHARACTERS = { t: 40, p: 600, x: 100 }; // characters of a title, a poem and what it was asked for with
const PAPER = { x: 150, y: 180, width: 780, height: 990 }; // in a picture
const TITLE = 0.72; // of the size of the lines
const ROOM = 0.86; // of the paper, that is written on

/**
 * The poems that were written since the page was opened, and which one hangs; as in the address, t is the title, p the
 * poem, x what it was asked for with, use what that was, and form what was to be written.
 */
const poems = [];
const judged = new WeakMap(); // what the server says of the form of a poem
let place = -1;
let error, status, drawKeeping;

/** Connect the tab. */
export function start() {
  error = new Sentence(part("error"), word);
  status = new Sentence(part("status"), word);
  part("examples").append(...EXAMPLES.map((one) => button(one.text, { class: "example" }, () => take(one))));
  part("use").addEventListener("change", draw);
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    write();
  });
  part("again").addEventListener("click", () => {
    fill(poems[place]);
    write();
  });
  for (const [name, step] of [["before", -1], ["after", 1]]) {
    part(name).addEventListener("click", () => {
      hang(place + step);
      if (part(name).disabled) part("again").focus();
    });
  }
  drawKeeping = startKeeping("poem", {
    sentences: { error, status },
    shown: () => poems[place],
    name: ({ t, p }) => `${t} ${columnsOf(p)[0]}`,
    text: ({ t, p }) => `${t}\n${p}`,
    show: open,
    picture: (signature) => pictureOf(poems[place], signature),
  });
  onLanguage(draw);
  onFonts(draw);
  draw();
  onAddress("poem", (values) => values.p && open(values));
}

/** The lines of verse as columns, without marks. */
const columnsOf = (text) => text.split(/[^\p{Script=Han}]+/u).map((line) => unmarked(line).join("")).filter(Boolean);

/** Hang a poem of an address or of those that were kept. */
function open(values) {
  const cut = (name, text) => [...text].slice(0, MAX_CHARACTERS[name]).join("");
  const { use, form } = values;
  const poem = { t: cut("t", values.t || UNTITLED), p: cut("p", values.p), x: cut("x", values.x ?? "") };
  poems.push({ ...poem, use: USES.includes(use) ? use : "begin", form: FORMS.includes(form) ? form : "any" });
  fill(poems.at(-1));
  hang(poems.length - 1);
}

/** Write into the form what a poem was asked for with. */
function fill({ x, use, form }) {
  part("text").value = x;
  part("use").value = use;
  part("kind").value = form;
}

function take({ form, use, text }) {
  if (isBusy(part("ask"))) return;
  fill({ x: text, use, form });
  draw();
  write();
}

function write() {
  const buttons = [part("ask"), part("again")];
  if (isBusy(buttons[0])) return;
  const [text, use, form] = [part("text").value.trim(), part("use").value, part("kind").value];
  if (text === "" && use === "title") {
    error.tell("emptyTitle");
    part("text").focus();
    return;
  }
  const seed = Math.floor(Math.random() * 2 ** 32);
  askFor(
    { buttons, error, status, doing: "writing" },
    async (stop) => {
      const request = { text, texts_are: use, form, seed };
      const [given, turned] = await Promise.all([ask("v1/poem", request, stop), scriptOf(text)]);
      given.predictions[0].text = turned(given.predictions[0].text);
      return given;
    },
    ({ predictions: [{ text: written, form: kept }], written_to: source }) => {
      status.tell("written", { text: written });
      poems.push({ t: use === "begin" ? UNTITLED : text, p: written, x: text, use, form });
      judged.set(poems.at(-1), { form: kept, source });
      hang(poems.length - 1);
      part("result").scrollIntoView({ block: "nearest" });
    },
  );
}

function hang(chosen) {
  place = chosen;
  setAddress("poem", poems[place]);
  draw();
}

function draw() {
  fillChoices(part("kind"), FORMS.map((form) => [form, word(`form_${form}`)]));
  fillChoices(part("use"), USES.map((use) => [use, word(use)]));
  part("label").textContent = word(`label_${part("use").value}`);
  const poem = poems[place];
  part("result").hidden = poem === undefined;
  if (poem === undefined) return;
  const columns = columnsOf(poem.p);
  const lines = columns.map((line) => element("p", {}, line));
  const seal = element("span", { class: "poem-seal", "aria-hidden": "true" }, "笔谈");
  part("lines").replaceChildren(element("h2", {}, poem.t), ...lines, seal);
  setVariable(part("lines"), "--hand", FONTS[handFor(poem.t + poem.p, "kai")]);
  setVariable(part("lines"), "--columns", columns.length + 2);
  const { form, source } = judged.get(poem) ?? {};
  const kept = form ? [word(`form_${form.name}`), word(form.tones ? "tones" : "notTones"), word(form.rhyme ? "rhyme" : "notRhyme")] : [];
  if (source !== undefined) kept.push(word(source === null ? "unknownTitle" : "writtenTo", { title: source }));
  part("form-kept").textContent = kept.join("　");
  part("before").disabled = place === 0;
  part("after").disabled = place === poems.length - 1;
  part("before").hidden = part("after").hidden = poems.length < 2;
  drawKeeping();
}

/** A poem as a picture to keep or to send: a mounted scroll, each line a column. */
function pictureOf({ t: title, p: text }, signature) {
  return drawPicture(`${title}${text}笔谈`, signature, (context) => {
    const lines = columnsOf(text);
    context.fillStyle = "#dcd9ca";
    context.fillRect(SCENE.x, SCENE.y, SCENE.width, SCENE.height);
    mount(context, PAPER);
    layPaper(context, PAPER);
    const longest = Math.max(...lines.map((line) => line.length), title.length * TITLE);
    const columns = lines.length + 2; // with the title and the seal
    const size = Math.min((PAPER.height * ROOM) / longest / 1.16, (PAPER.width * ROOM) / columns / 1.22, 92);
    const pitch = Math.min((PAPER.width * ROOM) / columns, size * 1.7);
    const top = PAPER.y + (PAPER.height - longest * size * 1.16) / 2;
    const column = (at) => PAPER.x + PAPER.width / 2 + ((columns - 1) / 2 - at) * pitch;
    writeDown(context, title, column(0), top, size * TITLE);
    lines.forEach((line, at) => writeDown(context, line, column(at + 1), top, size));
    const seal = Math.min(size * 0.95, 72);
    stamp(context, "笔谈", column(columns - 1) - seal / 2, top + longest * size * 1.16 - seal, seal);
  });
}
