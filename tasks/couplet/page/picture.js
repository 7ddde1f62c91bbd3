// A couplet drawn: as a picture of its door, or of scrolls beside a landscape; and on sheets to print, in millimetres.

import { drawing } from "../../page/elements.js";
import { drawPicture, FONTS, handFor, layPaper, mount, scatter, SCENE, unmarked, write } from "../../page/brush.js";
import { columnsOf, downwards, GROUNDS, inkColour, leftwards } from "./writing.js";

const FLOOR = 64;
const TALLEST = 850; // of a paper
const GAP = 30;
const ROD = 34; // of a mounted scroll, that reaches beyond it on either side

/**
 * A couplet as a picture to keep or to send.
 * @param {{first: string, second: string, scroll: string}} couplet the 横批 may be empty
 * @param {{ground: string, ink: string, font: string}} look
 * @param {string} name who signs it; may be empty
 * @returns {Promise<HTMLCanvasElement>}
 */
export function pictureOf(couplet, look, name) {
  const text = Object.values(couplet).join("") + (GROUNDS[look.ground].luck ?? "");
  return drawPicture(text, name, (context) => drawScene(context, couplet, look));
}

async function drawScene(context, { first, second, scroll }, { ground: name, ink, font }) {
  const ground = GROUNDS[name];
  drawWall(context, SCENE, ground);
  const grid = columnsOf(first, second);
  const width = Math.min(SCENE.width * 0.36, 96 + 66 * grid.columns + (grid.columns === 1 ? 10 : 0));
  const size = Math.min((width * 0.86) / grid.columns / 1.06, (TALLEST * 0.92) / grid.rows / 1.16);
  const isMounted = name === "xuan";
  const height = (size * 1.16 * grid.rows * (isMounted ? 0.88 : 1)) / 0.92;
  const bottom = SCENE.y + SCENE.height - FLOOR - (isMounted ? 96 : 46);
  const top = bottom - height;
  const gap = isMounted ? GAP + 2 * ROD : GAP;
  const across = Math.min(SCENE.width - 2 * width - 2 * gap - 90, Math.max(330, height * 0.62));
  const centre = SCENE.x + SCENE.width / 2;
  const apart = across > 160 ? across / 2 + gap : isMounted ? ROD + 8 : 14;
  if (across > 160) await drawMiddle(context, { x: centre - across / 2, y: top - 6, width: across, height: bottom - top + 52 }, ground);
  hang(downwards(second, { width, height }, grid, 1), { x: centre - apart - width, y: top, width, height });
  hang(downwards(first, { width, height }, grid, -1), { x: centre + apart, y: top, width, height });
  const length = [...scroll].length;
  if (length > 0) {
    const above = { width: Math.min(SCENE.width - 160, 128 * (length * 0.86 + 0.3)), height: 136 };
    const free = isMounted ? top - Math.min(90, height * 0.1) : top;
    const y = Math.max(SCENE.y + 30, (SCENE.y + 40 + free) / 2 - above.height / 2);
    hang(leftwards(scroll, above), { x: centre - above.width / 2, y, ...above }, false);
  }

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

const A4 = { width: 210, height: 297 };
const MARGIN = 8; // that home printers leave white
const BETWEEN = 5; // strips to cut apart

/**
 * The papers to print on by name: their size, and how a couplet is laid on sheets of it as
 * `sheets(couplet, size, {ground, ink, font, isRed})`: 上联, 下联, then the 横批 turned by a right angle. Without red the
 * paper itself is to be red.
 */
export const PAPERS = {
  one: { size: A4, sheets: onOneSheet },
  characters: { size: A4, sheets: characterBySheet },
  scrolls: { size: { width: 220, height: 1300 }, sheets: lineBySheet },
  halfSheets: { size: { width: 345, height: 1380 }, sheets: lineBySheet },
};

function onOneSheet(couplet, size, look) {
  const grid = columnsOf(couplet.first, couplet.second);
  const count = couplet.scroll === "" ? 2 : 3;
  const aspect = (grid.rows * 1.22 + 1.3) / (grid.columns * 1.15 + 0.9); // height of a strip by its width
  const widest = (size.width - 2 * MARGIN - (count - 1) * BETWEEN) / count;
  const width = Math.min(widest, (size.height - 2 * MARGIN) / aspect);
  const strips = stripsOf(couplet, grid, { width, height: width * aspect }, look);
  const across = count * width + (count - 1) * BETWEEN;
  // 上联 on the right, as they hang.
  const left = (place) => (size.width + across) / 2 - width - place * (width + BETWEEN);
  return [sheet(size, ...strips.map((strip, place) => drawing("g", { transform: `translate(${left(place)} ${MARGIN})` }, strip)))];
}

function lineBySheet(couplet, size, look) {
  const strips = stripsOf(couplet, columnsOf(couplet.first, couplet.second), size, look);
  return strips.map((strip) => sheet(size, strip));
}

function characterBySheet({ first, second, scroll }, size, look) {
  return unmarked(first + second + scroll).map((character) => {
    const written = { character, x: size.width / 2, y: size.height / 2, size: size.width * 0.82 };
    return sheet(size, ground(size, look, false), text(written, look));
  });
}

/** Each line on its paper; a 横批 lies on its side, so that all sheets have one size. */
function stripsOf({ first, second, scroll }, grid, paper, look) {
  const strips = [strip(downwards(first, paper, grid, -1), paper, look), strip(downwards(second, paper, grid, 1), paper, look)];
  if (scroll !== "") {
    const lying = { width: Math.min(paper.height, paper.width * ([...scroll].length * 0.86 + 0.3)), height: paper.width };
    const made = strip(leftwards(scroll, lying), lying, look);
    made.setAttribute("transform", `translate(${paper.width} 0) rotate(90)`);
    strips.push(drawing("g", {}, made));
  }
  return strips;
}

function strip(characters, paper, look) {
  return drawing("g", {}, ground(paper, look, true), ...characters.map((one) => text(one, look)));
}

/** The red of a paper with its golden edge, or the line to cut along. */
function ground({ width, height }, { ground: name, ink, isRed }, hasEdge) {
  const { colours, edge } = GROUNDS[name];
  if (!isRed || colours.gold === undefined) {
    const cut = { fill: "none", stroke: "#999", "stroke-width": 0.2, "stroke-dasharray": "2 2" };
    return drawing("rect", { width, height, ...cut });
  }
  const red = drawing("rect", { width, height, fill: colours[ink][1] });
  if (edge === null || !hasEdge) return red;
  const inset = Math.min(width, height) * 0.06;
  const inner = { x: inset, y: inset, width: width - 2 * inset, height: height - 2 * inset };
  return drawing("g", {}, red, drawing("rect", { ...inner, fill: "none", stroke: edge, "stroke-width": inset / 8 }));
}

function text({ character, x, y, size }, { ink, font }) {
  const look = { fill: inkColour(ink), "font-family": FONTS[font], "font-size": size };
  const place = { x, y, "text-anchor": "middle", "dominant-baseline": "central" };
  return drawing("text", { ...place, ...look }, character);
}

function sheet({ width, height }, ...parts) {
  const size = { width: `${width}mm`, height: `${height}mm`, viewBox: `0 0 ${width} ${height}` };
  return drawing("svg", { ...size, lang: "zh-Hans" }, ...parts);
}
