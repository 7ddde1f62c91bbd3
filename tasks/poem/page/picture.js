// A poem as a picture to keep or to send: a mounted scroll with its title, written downwards from the right.

import { canvasFor, caption, INK, layPaper, mount, stamp, writeDown, XUAN } from "../../page/brush.js";

const SIZE = { width: 1080, height: 1440 }; // pixels
const SCENE = { x: 44, y: 44, width: 992, height: 1264 };
const PAPER = { x: 150, y: 180, width: 780, height: 990 };
const TITLE = 0.72; // of the size of the lines
const ROOM = { width: 0.86, height: 0.86 }; // of the paper, that is written on

/**
 * Draw a poem.
 * @param {string} title
 * @param {string[]} lines each a column
 * @param {string} name who signs it; may be empty
 * @returns {Promise<?CanvasRenderingContext2D>} null where the browser cannot draw
 */
export async function drawPoem(title, lines, name) {
  const context = await canvasFor(SIZE.width, SIZE.height, `${title}${lines.join("")}${name}笔谈`);
  if (context === null) return null;
  layPaper(context, { x: 0, y: 0, ...SIZE }, XUAN);
  context.fillStyle = "#dcd9ca";
  context.fillRect(SCENE.x, SCENE.y, SCENE.width, SCENE.height);
  mount(context, PAPER);
  layPaper(context, PAPER, XUAN);
  const longest = Math.max(...lines.map((line) => line.length), title.length * TITLE);
  const columns = lines.length + 2; // with the title and the seal
  const size = Math.min((PAPER.height * ROOM.height) / longest / 1.16, (PAPER.width * ROOM.width) / columns / 1.22, 92);
  const pitch = Math.min((PAPER.width * ROOM.width) / columns, size * 1.7);
  const top = PAPER.y + (PAPER.height - longest * size * 1.16) / 2;
  const column = (at) => PAPER.x + PAPER.width / 2 + ((columns - 1) / 2 - at) * pitch;
  writeDown(context, title, column(0), top, size * TITLE, "kai", INK);
  lines.forEach((line, at) => writeDown(context, line, column(at + 1), top, size, "kai", INK));
  const seal = Math.min(size * 0.95, 72);
  stamp(context, "笔谈", column(columns - 1) - seal / 2, top + longest * size * 1.16 - seal, seal);
  caption(context, name, SCENE.x + SCENE.width, SIZE.height - 66);
  return context;
}
