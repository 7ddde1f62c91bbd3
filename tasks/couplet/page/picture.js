// A couplet as a picture to keep, drawn with the fonts of this machine.

import { saveFile } from "../../page/download.js";
import { element } from "../../page/elements.js";
import { columnsOf, downwards, FONTS, INKS, leftwards } from "./writing.js";

const SIZE = 96; // of a character, in pixels
const MARGIN = SIZE * 0.9;
const GAP = SIZE * 1.1;

/**
 * Save a couplet as PNG.
 * @param {{first: string, second: string, scroll: string}} couplet the 横批 may be empty
 * @param {"black"|"gold"} ink
 * @param {"kai"|"song"} font
 * @returns {Promise<boolean>} false where the browser cannot draw it
 */
export async function savePicture(couplet, ink, font) {
  const canvas = draw(couplet, INKS[ink], FONTS[font]);
  if (canvas === null) return false;
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (blob === null) return false; // more pixels than the browser can hold
  saveFile(blob, `${couplet.first}-${couplet.second}.png`);
  return true;
}

function draw({ first, second, scroll }, ink, font) {
  const grid = columnsOf(first, second);
  const paper = { width: SIZE * (grid.columns * 1.15 + 0.9), height: SIZE * (grid.rows * 1.22 + 1.3) };
  const across = 2 * paper.width + GAP;
  const length = [...scroll].length;
  const height = length === 0 ? 0 : Math.min(SIZE * 1.5, across / (length * 0.9));
  const above = { width: Math.min(across, height * (length * 0.8 + 0.3)), height };
  const canvas = element("canvas");
  canvas.width = Math.ceil(across + 2 * MARGIN);
  const top = MARGIN + (length === 0 ? 0 : above.height + SIZE * 0.6);
  canvas.height = Math.ceil(top + paper.height + MARGIN);
  const context = canvas.getContext("2d");
  if (context === null) return null;
  context.fillStyle = "#efe4d0";
  context.fillRect(0, 0, canvas.width, canvas.height);
  const right = MARGIN + paper.width + GAP;
  if (length > 0) write(leftwards(scroll, above), { x: (canvas.width - above.width) / 2, y: MARGIN, ...above });
  write(downwards(second, paper, grid, 1), { x: MARGIN, y: top, ...paper });
  write(downwards(first, paper, grid, -1), { x: right, y: top, ...paper });
  return canvas;

  function write(characters, box) {
    drawPaper(context, box, ink);
    context.fillStyle = ink.text;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const { character, x, y, size, isTurned } of characters) {
      context.save();
      context.font = `600 ${size}px ${font}`;
      context.translate(box.x + x, box.y + y);
      if (isTurned) context.rotate(Math.PI / 2);
      context.fillText(character, 0, 0);
      context.restore();
    }
  }
}

function drawPaper(context, box, { paper: [light, dark], gold }) {
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
  context.strokeStyle = gold;
  context.lineWidth = 3;
  context.strokeRect(box.x + 12, box.y + 12, box.width - 24, box.height - 24);
  context.restore();
}
