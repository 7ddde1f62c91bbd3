// A couplet as a picture to keep or to send: its door, or its scrolls beside a landscape, with a caption and a seal.

import { canvasFor, caption, handFor, layPaper, mount, scatter, write, XUAN } from "../../page/brush.js";
import { columnsOf, downwards, GROUNDS, inkColour, leftwards } from "./writing.js";

const SIZE = { width: 1080, height: 1440 }; // pixels
const MAT = { side: 44, bottom: 132 }; // of paper, around the scene
const FLOOR = 64;
const TALLEST = 850; // of a paper
const GAP = 30;
const ROD = 34; // of a mounted scroll, that reaches beyond it on either side

/**
 * Draw a couplet.
 * @param {{first: string, second: string, scroll: string}} couplet the 横批 may be empty
 * @param {{ground: string, ink: string, font: string}} look
 * @param {string} name who signs it; may be empty
 * @returns {Promise<?CanvasRenderingContext2D>} null where the browser cannot draw
 */
export async function drawPicture({ first, second, scroll }, { ground: name, ink, font }, signature) {
  const ground = GROUNDS[name];
  const text = `${first}${second}${scroll}${ground.luck ?? ""}${signature}笔谈`;
  const context = await canvasFor(SIZE.width, SIZE.height, text);
  if (context === null) return null;
  const scene = { x: MAT.side, y: MAT.side, width: SIZE.width - 2 * MAT.side, height: SIZE.height - MAT.side - MAT.bottom };
  layPaper(context, { x: 0, y: 0, ...SIZE }, XUAN);
  drawWall(context, scene, ground);
  const grid = columnsOf(first, second);
  const width = Math.min(scene.width * 0.36, 96 + 66 * grid.columns + (grid.columns === 1 ? 10 : 0));
  const size = Math.min((width * 0.86) / grid.columns / 1.06, (TALLEST * 0.92) / grid.rows / 1.16);
  const isMounted = name === "xuan";
  const height = (size * 1.16 * grid.rows * (isMounted ? 0.88 : 1)) / 0.92;
  const bottom = scene.y + scene.height - FLOOR - (isMounted ? 96 : 46);
  const top = bottom - height;
  const gap = isMounted ? GAP + 2 * ROD : GAP;
  const across = Math.min(scene.width - 2 * width - 2 * gap - 90, Math.max(330, height * 0.62));
  const centre = SIZE.width / 2;
  const apart = across > 160 ? across / 2 + gap : isMounted ? ROD + 8 : 14;
  if (across > 160) await drawMiddle(context, { x: centre - across / 2, y: top - 6, width: across, height: bottom - top + 52 }, ground);
  hang(downwards(second, { width, height }, grid, 1), { x: centre - apart - width, y: top, width, height });
  hang(downwards(first, { width, height }, grid, -1), { x: centre + apart, y: top, width, height });
  const length = [...scroll].length;
  if (length > 0) {
    const above = { width: Math.min(scene.width - 160, 128 * (length * 0.86 + 0.3)), height: 136 };
    const free = isMounted ? top - Math.min(90, height * 0.1) : top;
    const y = Math.max(scene.y + 30, (scene.y + 40 + free) / 2 - above.height / 2);
    hang(leftwards(scroll, above), { x: centre - above.width / 2, y, ...above }, false);
  }
  caption(context, signature, SIZE.width - MAT.side, SIZE.height - MAT.bottom / 2);
  return context;

  function hang(characters, box, isUpright = true) {
    if (isMounted && isUpright) mount(context, box);
    layPaper(context, box, ground.colours[ink]);
    if (ground.flecks !== null) scatter(context, box, ground.flecks, 2200);
    if (ground.edge !== null) {
      context.strokeStyle = ground.edge;
      context.lineWidth = 3;
      context.strokeRect(box.x + 11, box.y + 11, box.width - 22, box.height - 22);
    }
    for (const one of characters) write(context, one.character, box.x + one.x, box.y + one.y, one.size, font, inkColour(ink));
  }
}

function drawWall(context, { x, y, width, height }, { wall: [colour, door] }) {
  context.fillStyle = colour;
  context.fillRect(x, y, width, height);
  context.fillStyle = "rgb(80 60 40 / 8%)";
  for (let line = y; door !== null && line < y + height; line += 44) context.fillRect(x, line, width, 2);
  const eaves = context.createLinearGradient(0, y, 0, y + 40);
  eaves.addColorStop(0, "#4a2a18");
  eaves.addColorStop(1, "#332014");
  context.fillStyle = eaves;
  context.fillRect(x, y, width, door === null ? 12 : 40);
  context.fillStyle = "#8d8376";
  const floor = door === null ? 18 : FLOOR; // on which a door stands
  context.fillRect(x, y + height - floor, width, floor);
}

/** A door of two leaves with what hangs on it; beside 宣纸 a landscape. */
async function drawMiddle(context, box, { wall: [, wood], luck }) {
  const { x, y, width, height } = box;
  if (wood === null) {
    const paper = { x, y, width, height: height - 46 };
    mount(context, paper);
    const landscape = new Image();
    landscape.src = "tasks/couplet/mountains.svg";
    await landscape.decode();
    const scale = Math.max(paper.width / landscape.width, paper.height / landscape.height);
    const [wide, high] = [paper.width / scale, paper.height / scale];
    const from = [(landscape.width - wide) / 2, landscape.height - high, wide, high];
    context.drawImage(landscape, ...from, paper.x, paper.y, paper.width, paper.height);
    return;
  }
  context.fillStyle = "#33201a";
  context.fillRect(x, y, width, height);
  for (const side of [0, 1]) {
    const leaf = { x: x + 14 + (side * (width - 26)) / 2, y: y + 14, width: (width - 30) / 2, height: height - 14 };
    context.fillStyle = wood;
    context.fillRect(leaf.x, leaf.y, leaf.width, leaf.height);
    context.fillStyle = "rgb(0 0 0 / 11%)";
    for (let line = leaf.x + 22; line < leaf.x + leaf.width; line += 24) context.fillRect(line, leaf.y, 2, leaf.height);
    context.fillStyle = luck === null ? "#9a948c" : "#d8a640";
    context.beginPath();
    context.arc(side === 0 ? leaf.x + leaf.width - 22 : leaf.x + 22, y + height * 0.56, 9, 0, 7);
    context.fill();
  }
  if (luck === null) return;
  const half = Math.min(width * 0.27, 92);
  context.save();
  context.translate(x + width / 2, y + height * 0.3);
  context.rotate(Math.PI / 4);
  const square = { x: -half * 0.71, y: -half * 0.71, width: half * 1.42, height: half * 1.42 };
  layPaper(context, square, ["#dd4133", "#c52c22"]);
  context.strokeStyle = "#f3c85f";
  context.lineWidth = 3;
  context.strokeRect(square.x + 8, square.y + 8, square.width - 16, square.height - 16);
  context.restore();
  write(context, luck, x + width / 2, y + height * 0.3, half * 0.95, handFor(luck, "brush"), "#ffe09a");
}
