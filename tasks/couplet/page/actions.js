// What can be done with the couplet that hangs: its ink and font, keeping it, copying, a picture, paper.

import { copyText } from "../../page/clipboard.js";
import { element, partsOf, setVariable } from "../../page/elements.js";
import { confirm } from "../../page/feedback.js";
import { onLanguage } from "../../page/language.js";
import { printSheets } from "../../page/sheets.js";
import { asText, isLiked, toggleLiked } from "./liked.js";
import { savePicture } from "./picture.js";
import { PAPERS, sheetsOf } from "./print.js";
import { word } from "./words.js";
import { FONTS } from "./writing.js";

const part = partsOf("couplet");
const OTHER = { black: "gold", gold: "black", kai: "song", song: "kai" };
const PAPER_WORDS = { one: "paperOne", characters: "paperCharacters", scrolls: "paperScrolls", halfSheets: "paperHalfSheets" };
const look = { ink: "black", font: "kai" };

/**
 * Connect the buttons.
 * @param {() => {first: string, second: string, scroll: string}} hung the couplet that hangs
 * @param {{error: Sentence, status: Sentence}} sentences
 */
export function startActions(hung, { error, status }) {
  for (const name of ["ink", "font"]) {
    part(name).addEventListener("click", () => {
      look[name] = OTHER[look[name]];
      drawLook();
    });
  }
  const finish = async (id, work, done, failed, own) => {
    if (!(await work())) return error.tell(failed);
    error.tell(null);
    status.tell(done);
    confirm(part(id), () => word(done), () => word(own));
  };
  const copy = () => copyText(asText(hung()));
  const save = () => savePicture(hung(), look.ink, look.font);
  part("copy").addEventListener("click", () => finish("copy", copy, "copied", "copyFailed", "copy"));
  part("save").addEventListener("click", () => finish("save", save, "saved", "saveFailed", "savePicture"));
  part("like").addEventListener("click", () => {
    toggleLiked(hung());
    status.tell(isLiked(hung()) ? "likedNow" : "likedNoMore");
  });
  part("print").addEventListener("click", () => {
    const paper = part("paper").value;
    printSheets(sheetsOf(hung(), paper, { ...look, isRed: part("red").checked }), PAPERS[paper].size);
  });
  part("paper").append(...Object.keys(PAPERS).map((name) => element("option", { value: name })));
  onLanguage(drawLook);
  drawLook();
}

/** Say on the button whether the couplet that hangs is kept. */
export function drawLike(couplet) {
  part("like").textContent = word(isLiked(couplet) ? "unlike" : "like");
}

function drawLook() {
  part("pair").dataset.ink = look.ink;
  setVariable(part("pair"), "--serif", FONTS[look.font]);
  part("ink").textContent = word(look.ink === "black" ? "inkGold" : "inkBlack");
  part("font").textContent = word(look.font === "kai" ? "fontSong" : "fontKai");
  for (const choice of part("paper").children) choice.textContent = word(PAPER_WORDS[choice.value]);
}
