// The sentiment tab: asks for a judgement and colours the review by what each word speaks for.

import { ask } from "../../page/api.js";
import { element, partsOf, setVariable } from "../../page/elements.js";
import { startForm } from "../../page/form.js";
import { onLanguage } from "../../page/language.js";
import { allDetails } from "../../page/models.js";
import { word } from "./words.js";

const part = partsOf("sentiment");
const EXAMPLES = {
  characters: ["房间很干净，服务员也很热情。", "隔音太差，早餐也一般，不会再来了。", "位置很好，早餐丰富，就是房间小了点。"],
  words: ["A warm, funny and quietly moving film.", "It's long, loud and dull."],
};

const STRONG = 2; // the weight that is shaded most, whatever the review
let judged = null;

/** Connect the tab. */
export function start() {
  const { status } = startForm("sentiment", {
    word,
    doing: "judging",
    examples: () => allDetails("sentiment").flatMap(({ tokens }) => EXAMPLES[tokens] ?? []),
    request: (text, stop) => ask("v1/sentiment", { text }, stop),
    show(answer) {
      status.tell(nameOf(answer), { percent: `${Math.round(answer.probability * 100)}%` });
      judged = answer;
      draw();
      part("result").scrollIntoView({ block: "nearest" });
    },
  });
  onLanguage(draw);
}

const nameOf = ({ label }) => ({ 1: "good", 0: "bad" })[label] ?? "unclear";

/** The review as it was typed, each word that the model read in the colour of what it speaks for. */
function coloured(review, words) {
  const plain = review.toLowerCase();
  const parts = [];
  let end = 0;
  for (const { text, weight } of words) {
    const start = plain.indexOf(text.toLowerCase(), end);
    if (start < 0) continue; // read otherwise than it was written
    const attributes = { class: weight < 0 ? "bad" : "good", title: weight.toFixed(2) };
    const span = element("span", attributes, review.slice(start, start + text.length));
    parts.push(review.slice(end, start), setVariable(span, "--weight", Math.min(1, Math.abs(weight) / STRONG).toFixed(3)));
    end = start + text.length;
  }
  return [...parts, review.slice(end)];
}

function draw() {
  if (judged === null) return;
  const { text, words, probability } = judged;
  part("words").replaceChildren(...coloured(text, words));
  part("seal").textContent = word(`seal_${nameOf(judged)}`);
  setVariable(part("bar"), "--share", probability);
  part("result").dataset.label = nameOf(judged);
  part("result").hidden = part("legend").hidden = false;
}
