// The poem tab: asks for a poem and hangs it as a scroll, written downwards from the right.

import { ask } from "../../page/api.js";
import { button, element, partsOf } from "../../page/elements.js";
import { askFor, confirm, isBusy, Sentence } from "../../page/feedback.js";
import { copyText } from "../../page/handing_over.js";
import { unmarked } from "../../page/ink.js";
import { showKeepsake } from "../../page/keepsake.js";
import { onLanguage } from "../../page/language.js";
import { linkTo, onAddress, setAddress } from "../../page/tabs.js";
import { scriptOf } from "../../page/traditional.js";
import { drawPoem } from "./picture.js";
import { word } from "./words.js";

const part = partsOf("poem");
const FORMS = ["七绝", "五绝", "七律", "五律", "any"];
const LABELS = { title: "label_title", begin: "label_begin", acrostic: "label_acrostic" };
const EXAMPLES = [
  { form: "七绝", use: "title", text: "秋夜" },
  { form: "五律", use: "begin", text: "明月松间照" },
  { form: "七绝", use: "acrostic", text: "春夏秋冬" },
  { form: "any", use: "begin", text: "大江东去" },
];

const UNTITLED = "无题";
let poem = null; // {title, text, form}
let error, status;

/** Connect the tab. */
export function start() {
  error = new Sentence(part("error"), word);
  status = new Sentence(part("status"), word);
  const examples = EXAMPLES.map((one) => button(one.text, { class: "example" }, () => take(one)));
  part("examples").append(...examples);
  part("use").addEventListener("change", draw);
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    write();
  });
  part("again").addEventListener("click", write);
  part("copy").addEventListener("click", async () => {
    const copied = await copyText(`${poem.title}\n${poem.text}`);
    confirm(part("copy"), () => word(copied ? "copied" : "copyFailed"), () => word("copy"));
  });
  part("save").addEventListener("click", () =>
    showKeepsake({
      draw: (name) => drawPoem(poem.title, columnsOf(poem.text), name),
      file: `${poem.title}.png`,
      text: `${poem.title}\n${poem.text}`,
      link: linkTo("poem", addressOf(poem)),
    }),
  );
  onLanguage(draw);
  draw();
  onAddress("poem", ({ t, p = "" }) => {
    if (p === "") return;
    poem = { title: [...(t || UNTITLED)].slice(0, 40).join(""), text: [...p].slice(0, 600).join(""), form: null };
    draw();
  });
}

const addressOf = ({ title, text }) => ({ t: title, p: text });

/** The lines of verse as columns, without marks. */
const columnsOf = (text) => text.split(/[^\p{Script=Han}]+/u).map((line) => unmarked(line).join("")).filter(Boolean);

function take({ form, use, text }) {
  if (isBusy(part("ask"))) return;
  part("kind").value = form;
  part("use").value = use;
  part("text").value = text;
  draw();
  write();
}

function write() {
  const buttons = [part("ask"), part("again")];
  if (isBusy(buttons[0])) return;
  const form = part("kind").value;
  const use = part("use").value;
  const request = { text: part("text").value.trim(), texts_are: use, form, seed: Math.floor(Math.random() * 2 ** 32) };
  askFor(
    { buttons, error, status, doing: "writing" },
    async (stop) => {
      const [given, turned] = await Promise.all([ask("v1/poem", request, stop), scriptOf(request.text)]);
      given.predictions[0].text = turned(given.predictions[0].text);
      return given;
    },
    ({ predictions: [{ text, form: kept }], written_to }) => {
      poem = { title: use === "begin" || request.text === "" ? UNTITLED : request.text, text, form: kept, written_to };
      status.tell("written", { text });
      setAddress("poem", addressOf(poem));
      draw();
      part("result").scrollIntoView({ block: "nearest" });
    },
  );
}

function draw() {
  choose(part("kind"), FORMS, (form) => (form === "any" ? word("free") : form));
  choose(part("use"), Object.keys(LABELS), (use) => word(use));
  part("label").textContent = word(LABELS[part("use").value]);
  part("result").hidden = poem === null;
  if (poem === null) return;
  const lines = columnsOf(poem.text).map((line) => element("p", {}, line));
  const seal = element("span", { class: "poem-seal", "aria-hidden": "true" }, "笔谈");
  part("lines").replaceChildren(element("h2", {}, poem.title), ...lines, seal);
  const { form } = poem;
  const kept = form ? [form.name, word(form.tones ? "tones" : "notTones"), word(form.rhyme ? "rhyme" : "notRhyme")] : [];
  const { written_to } = poem;
  if (written_to !== undefined) kept.push(word(written_to === null ? "unknownTitle" : "writtenTo", { title: written_to }));
  part("kept").textContent = kept.join("　");
}

/** Fill a list of choices and keep what is chosen. */
function choose(list, values, label) {
  const chosen = list.value;
  list.replaceChildren(...values.map((value) => element("option", { value }, label(value))));
  if (values.includes(chosen)) list.value = chosen;
}
