// The translation tab: the text and its translation on facing pages, and the other translations.

import { ApiError, ask } from "../../page/api.js";
import { scriptOf } from "../../page/characters.js";
import { element, partsOf, setVariable } from "../../page/elements.js";
import { startForm } from "../../page/form.js";
import { startKeeping } from "../../page/keep.js";
import { word } from "./words.js";

const part = partsOf("translation");
const EXAMPLES = ["上闻之，召诸将议，余人不预。", "太祖大悦，赐帛百匹。", "帝崩，太子即位，大赦天下。"];
const CANDIDATES = 3;
let answer = null;

/** Connect the tab. */
export function start() {
  const sentences = startForm("translation", { word, doing: "translating", examples: () => EXAMPLES, request, show });
  startKeeping("translation", { sentences, shown: () => ({ s: answer.source }), text: () => answer.predictions[0].text });

  function show(given) {
    if (!given.predictions.length) throw new ApiError("nothing");
    answer = given;
    sentences.status.tell("translated", { text: given.predictions[0].text });
    draw();
    if (given.unsure) sentences.error.tell(given.unsure === "modern" ? "modern" : "repeats");
    part("book").scrollIntoView({ block: "nearest" });
  }
}

/** Ask for translations, in the script of the text. */
async function request(source, stop) {
  const body = { source, n_best: CANDIDATES, attention: true };
  const [given, turned] = await Promise.all([ask("v1/translation", body, stop), scriptOf(source)]);
  for (const one of given.predictions) one.text = turned(one.text);
  const { attention } = given;
  if (attention) for (const side of ["source", "target"]) attention[side] = attention[side].map(turned);
  return given;
}

function draw() {
  const { attention, source, predictions } = answer;
  const [best, ...others] = predictions;
  const ends = attention?.target.at(-1) === "<eos>" ? -1 : undefined;
  const [read, written] = attention ? [attention.source, attention.target.slice(0, ends)] : [[source], [best.text]];
  const [sources, targets] = [read, written].map((tokens) => tokens.map((token) => element("span", { class: "glyph" }, token)));
  part("read").replaceChildren(...sources);
  part("text").replaceChildren(...targets);
  part("hint").hidden = !attention;
  if (attention) connect(sources, targets, attention.weights);
  part("others").replaceChildren(...others.map((other) => element("li", {}, other.text)));
  part("result").hidden = false;
}

/** Pointing at a character, or going to it by the arrows, shades those on the other page that it comes from or goes
 * into: weights [target][source]. */
function connect(sources, targets, weights) {
  const shade = (tokens, row) => {
    const most = Math.max(...row, 1e-9);
    tokens.forEach((token, at) => setVariable(token, "--weight", (row[at] / most).toFixed(3)));
  };
  const clear = () => [...sources, ...targets].forEach((token) => setVariable(token, "--weight", 0));
  const show = (token, others, row) => {
    for (const kind of ["pointerenter", "pointerdown", "focus"]) {
      token.addEventListener(kind, () => {
        clear();
        setVariable(token, "--weight", 1);
        shade(others, row);
      });
    }
  };
  targets.forEach((token, at) => show(token, sources, weights[at]));
  sources.forEach((token, at) => show(token, targets, targets.map((_, place) => weights[place][at])));
  part("book").onpointerleave = clear;
  for (const tokens of [sources, targets]) walk(tokens);
}

/** One of several elements takes the focus; arrows, Home and End go to the others. */
function walk(tokens) {
  tokens.forEach((token, at) => {
    token.tabIndex = at === 0 ? 0 : -1;
    token.addEventListener("keydown", (event) => {
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      tokens.at(to % tokens.length).focus();
    });
    token.addEventListener("focus", () => tokens.forEach((other) => (other.tabIndex = other === token ? 0 : -1)));
  });
}
