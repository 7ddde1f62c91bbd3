// The poem tab: asks for a poem and shows it, two lines of verse in one.

import { ask } from "../../page/api.js";
import { copyText } from "../../page/clipboard.js";
import { button, element, partsOf } from "../../page/elements.js";
import { askFor, confirm, isBusy, Sentence } from "../../page/feedback.js";
import { onLanguage } from "../../page/language.js";
import { word } from "./words.js";

const part = partsOf("poem");
const FORMS = ["", "五绝", "七绝", "五律", "七律"];
const LABELS = { begin: "label_begin", title: "label_title", acrostic: "label_acrostic" };
const EXAMPLES = [
  { form: "七绝", use: "title", text: "秋夜" },
  { form: "五律", use: "begin", text: "明月松间照" },
  { form: "七绝", use: "acrostic", text: "春夏秋冬" },
  { form: "", use: "begin", text: "大江东去" },
];

let answer = null;
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
    const copied = await copyText(answer.predictions[0].text);
    confirm(part("copy"), () => word(copied ? "copied" : "copyFailed"), () => word("copy"));
  });
  onLanguage(draw);
  draw();
}

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
  const form = part("kind").value || null;
  const use = part("use").value;
  if (use === "acrostic" && form === null) {
    error.tell("noForm");
    part("kind").focus();
    return;
  }
  const request = { text: part("text").value.trim(), texts_are: use, form, seed: Math.floor(Math.random() * 2 ** 32) };
  askFor(
    { buttons, error, status, doing: "writing" },
    () => ask("v1/poem", request),
    (found) => {
      answer = found;
      status.tell("written", { text: found.predictions[0].text });
      draw();
    },
  );
}

function draw() {
  choose(part("kind"), FORMS, (form) => form || word("free"));
  choose(part("use"), Object.keys(LABELS), (use) => word(use));
  part("label").textContent = word(LABELS[part("use").value]);
  part("result").hidden = answer === null;
  if (answer === null) return;
  const [poem] = answer.predictions;
  const lines = poem.text.split(/(?<=[。\n])/u).filter((line) => line.trim() !== "");
  part("lines").replaceChildren(...lines.map((line) => element("p", {}, line)));
  const kept = poem.form
    ? [poem.form.name, word(poem.form.tones ? "tones" : "notTones"), word(poem.form.rhyme ? "rhyme" : "notRhyme")]
    : [];
  part("kept").textContent = [...kept, word("score", { score: poem.score.toFixed(2) })].join("　");
}

/** Fill a list of choices and keep what is chosen. */
function choose(list, values, label) {
  const chosen = list.value;
  list.replaceChildren(...values.map((value) => element("option", { value }, label(value))));
  if (values.includes(chosen)) list.value = chosen;
}
