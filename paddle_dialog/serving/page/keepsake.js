// A picture to keep or to send, shown before it is: whoever likes signs it.

import { byId } from "./elements.js";
import { confirm } from "./feedback.js";
import { copyText, saveFile } from "./handing_over.js";
import { word } from "./language.js";

const part = (name) => byId(`keepsake-${name}`);
let shown, blob;

/** Connect the window. */
export function startKeepsake() {
  part("name").addEventListener("input", ({ isComposing }) => isComposing || draw());
  part("name").addEventListener("compositionend", draw);
  part("save").addEventListener("click", () => saveFile(blob, shown.file));
  part("share").addEventListener("click", share);
  part("link").addEventListener("click", async () => {
    const done = (await copyText(shown.link)) ? "copied" : "copyFailed";
    confirm(part("link"), () => word(done), () => word("copyLink"));
  });
  part("close").addEventListener("click", () => byId("keepsake").close());
}

/**
 * Show a picture.
 * @param {object} picture
 * @param {(name: string) => Promise<?CanvasRenderingContext2D>} picture.draw draws it with who signs it
 * @param {string} picture.file its name as a file
 * @param {string} picture.text what it says
 * @param {string} picture.link opens what it shows
 */
export async function showKeepsake(picture) {
  shown = picture;
  part("share").hidden = true;
  part("picture").removeAttribute("src");
  byId("keepsake").showModal();
  await draw();
}

async function draw() {
  const { draw: paint, text } = shown;
  const context = await paint(part("name").value.trim());
  blob = context === null ? null : await new Promise((done) => context.canvas.toBlob(done, "image/png"));
  part("error").hidden = blob !== null;
  for (const name of ["save", "picture"]) part(name).hidden = blob === null;
  if (blob === null) return;
  URL.revokeObjectURL(part("picture").src);
  part("picture").src = URL.createObjectURL(blob);
  part("picture").alt = text;
  part("share").hidden = !navigator.canShare?.({ files: [file()] });
}

const file = () => new File([blob], shown.file, { type: "image/png" });

async function share() {
  try {
    await navigator.share({ files: [file()], text: `${shown.text}\n${shown.link}` });
  } catch (error) {
    if (error.name !== "AbortError") throw error; // who thinks better of it
  }
}
