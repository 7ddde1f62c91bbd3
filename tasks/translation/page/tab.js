// The translation tab: asks for translations, shows the best, the others, and where the model looked.

import { ApiError, ask } from "../../page/api.js";
import { attentionView } from "../../page/attention.js";
import { copyText } from "../../page/clipboard.js";
import { button, element, partsOf } from "../../page/elements.js";
import { askFor, confirm, isBusy, Sentence } from "../../page/feedback.js";
import { onLanguage } from "../../page/language.js";
import { word } from "./words.js";

const part = partsOf("translation");
const EXAMPLES = ["学而时习之，不亦说乎？", "臣本布衣，躬耕于南阳。", "先帝不以臣卑鄙，三顾臣于草庐之中。"];
const CANDIDATES = 3;
let answer = null;

/** Connects the tab. */
export function start() {
  const error = new Sentence(part("error"), word);
  const status = new Sentence(part("status"), word);
  const translate = () => {
    if (isBusy(part("ask"))) return;
    const source = part("source").value.trim();
    if (source === "") {
      error.tell("empty");
      part("source").focus();
      return;
    }
    askFor(
      { buttons: [part("ask")], error, status, doing: "translating" },
      () => ask("v1/translation", { source, n_best: CANDIDATES, attention: true }),
      (given) => {
        if (!given.predictions?.length) throw new ApiError("nothing");
        answer = given;
        status.tell("translated", { text: given.predictions[0].text });
        draw();
      },
    );
  };
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    translate();
  });
  const take = (text) => () => {
    part("source").value = text;
    translate();
  };
  part("examples").append(...EXAMPLES.map((text) => button(text, { class: "example" }, take(text))));
  part("copy").addEventListener("click", async () => {
    if (await copyText(answer.predictions[0].text)) confirm(part("copy"), () => word("copied"), () => word("copy"));
    else error.tell("copyFailed");
  });
  onLanguage(draw);
}

function draw() {
  part("result").hidden = answer === null;
  if (answer === null) return;
  const [best, ...others] = answer.predictions;
  part("text").textContent = best.text;
  part("others").replaceChildren(...others.map((other) => element("li", {}, other.text)));
  part("attention").replaceChildren(attentionView(answer.attention, "zh-Hans"));
}
