// A couplet as a picture to keep, drawn with the fonts of this machine.

import { element } from "../../page/elements.js";
import { ROWS } from "./pair.js";

const SIZE = 96; // of a character, in pixels
const LEADING = 1.22;
const FONT = `600 ${SIZE}px "STKaiti", "Kaiti SC", "KaiTi", "AR PL UKai CN", "Noto Serif CJK SC", "Songti SC", "SimSun", serif`;
const INKS = {
  black: { paper: ["#d8392b", "#c52c22"], text: "#1c0f0a" },
  gold: { paper: ["#b3201b", "#991512"], text: "#f8d88a" },
};
const CORNER = /[，。、；：！？]/u; // stands in the upper right of its place when written downwards
const TURNED = /[（）《》〈〉「」『』【】—…～]/u;

/**
 * Save a couplet as PNG.
 * @returns {Promise<boolean>} false where the browser cannot draw it
 */
export async function savePicture(first, second, ink) {
  const canvas = draw(first, second, INKS[ink]);
  if (canvas === null) return false;
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (blob === null) return false; // more pixels than the browser can hold
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: `${first}-${second}.png` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  return true;
}

function draw(first, second, ink) {
  const longest = Math.max([...first].length, [...second].length);
  const columns = Math.ceil(longest / ROWS);
  const rows = Math.ceil(longest / columns);
  const paper = { width: columns * SIZE * 1.15 + SIZE * 0.9, height: rows * SIZE * LEADING + SIZE * 1.3 };
  const margin = SIZE * 0.9;
  const gap = SIZE * 1.1;
  const canvas = element("canvas");
  canvas.width = Math.ceil(2 * paper.width + gap + 2 * margin);
  canvas.height = Math.ceil(paper.height + 2 * margin);
  const context = canvas.getContext("2d");
  if (context === null) return null;
  context.fillStyle = "#efe4d0";
  context.fillRect(0, 0, canvas.width, canvas.height);
  drawScroll(context, [...second], { x: margin, y: margin, ...paper }, rows, ink, 1);
  drawScroll(context, [...first], { x: margin + paper.width + gap, y: margin, ...paper }, rows, ink, -1);
  return canvas;
}

/** One scroll; its columns run to the right (1) or, on the 上联, to the left (-1). */
function drawScroll(context, characters, box, rows, ink, direction) {
  drawPaper(context, box, ink.paper);
  context.fillStyle = ink.text;
  context.font = FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const columns = Math.ceil(characters.length / rows);
  const middle = box.x + box.width / 2;
  characters.forEach((character, place) => {
    const column = Math.floor(place / rows) - (columns - 1) / 2;
    const x = middle + direction * column * SIZE * 1.15;
    const y = box.y + SIZE * 0.65 + ((place % rows) + 0.5) * SIZE * LEADING;
    context.save();
    context.translate(x, y);
    if (CORNER.test(character)) context.translate(SIZE * 0.5, -SIZE * 0.5);
    if (TURNED.test(character)) context.rotate(Math.PI / 2);
    context.fillText(character, 0, 0);
    context.restore();
  });
}

function drawPaper(context, box, [light, dark]) {
  const shade = context.createLinearGradient(box.x, box.y, box.x + box.width, box.y + box.height);
  shade.addColorStop(0, light);
  shade.addColorStop(1, dark);
  context.save();
  context.shadowColor = "rgb(60 30 10 / 45%)";
  context.shadowBlur = 22;
  context.shadowOffsetY = 8;
  context.fillStyle = shade;
  context.fillRect(box.x, box.y, box.width, box.height);
  context.restore();
  context.save();
  context.beginPath();
  context.rect(box.x, box.y, box.width, box.height);
  context.clip();
  context.fillStyle = "rgb(255 214 120 / 40%)";
  let seed = 7; // the same flecks of gold in every picture
  for (let fleck = 0; fleck < (box.width * box.height) / 2600; fleck += 1) {
    const [a, b, c] = [0, 0, 0].map(() => (seed = (seed * 16807) % 2147483647) / 2147483647);
    context.fillRect(box.x + a * box.width, box.y + b * box.height, 1.5 + 3 * c, 1.5 + 2 * c);
  }
  context.strokeStyle = "#e9b949";
  context.lineWidth = 3;
  context.strokeRect(box.x + 12, box.y + 12, box.width - 24, box.height - 24);
  context.restore();
}
