// A couplet on paper: drawn in millimetres, one drawing a sheet.

import { drawing } from "../../page/elements.js";
import { FONTS, unmarked } from "../../page/brush.js";
import { columnsOf, downwards, GROUNDS, inkColour, leftwards } from "./writing.js";

const A4 = { width: 210, height: 297 };
const MARGIN = 8; // that home printers leave white
const GAP = 5;

/** The choices, each with the size of its sheets and how it makes them. */
export const PAPERS = {
  one: { size: A4, sheets: onOneSheet },
  characters: { size: A4, sheets: characterBySheet },
  scrolls: { size: { width: 220, height: 1300 }, sheets: lineBySheet },
  halfSheets: { size: { width: 345, height: 1380 }, sheets: lineBySheet },
};

/**
 * The sheets of a couplet: 上联, 下联, then the 横批 turned by a right angle.
 * @param {{first: string, second: string, scroll: string}} couplet the 横批 may be empty
 * @param {string} paper one of `PAPERS`
 * @param {{ground: string, ink: string, font: string, isRed: boolean}} look without red the paper itself is to be red
 * @returns {SVGElement[]}
 */
export function sheetsOf(couplet, paper, { ground, ink, font, isRed }) {
  const { size, sheets } = PAPERS[paper];
  const { colours, edge } = GROUNDS[ground];
  const look = { fill: inkColour(ink), font: FONTS[font], red: isRed && colours.gold ? colours[ink][1] : null, edge };
  return sheets(couplet, size, look);
}

function onOneSheet(couplet, size, look) {
  const grid = columnsOf(couplet.first, couplet.second);
  const count = couplet.scroll === "" ? 2 : 3;
  const aspect = (grid.rows * 1.22 + 1.3) / (grid.columns * 1.15 + 0.9); // height of a strip by its width
  const widest = (size.width - 2 * MARGIN - (count - 1) * GAP) / count;
  const width = Math.min(widest, (size.height - 2 * MARGIN) / aspect);
  const strips = stripsOf(couplet, grid, { width, height: width * aspect }, look);
  const across = count * width + (count - 1) * GAP;
  // 上联 on the right, as they hang.
  const left = (place) => (size.width + across) / 2 - width - place * (width + GAP);
  return [sheet(size, ...strips.map((strip, place) => moved(strip, left(place), MARGIN)))];
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
function ground({ width, height }, { red, edge: colour }, hasEdge) {
  const cut = { fill: "none", stroke: "#999", "stroke-width": 0.2, "stroke-dasharray": "2 2" };
  const all = drawing("rect", { width, height, ...(red === null ? cut : { fill: red }) });
  if (red === null || colour === null || !hasEdge) return all;
  const inset = Math.min(width, height) * 0.06;
  const edge = { fill: "none", stroke: colour, "stroke-width": inset / 8 };
  const inner = { x: inset, y: inset, width: width - 2 * inset, height: height - 2 * inset };
  return drawing("g", {}, all, drawing("rect", { ...inner, ...edge }));
}

function text({ character, x, y, size }, { fill, font }) {
  const look = { fill, "font-family": font, "font-size": size };
  const place = { x, y, "text-anchor": "middle", "dominant-baseline": "central" };
  return drawing("text", { ...place, ...look }, character);
}

const moved = (part, x, y) => drawing("g", { transform: `translate(${x} ${y})` }, part);

function sheet({ width, height }, ...parts) {
  const size = { width: `${width}mm`, height: `${height}mm`, viewBox: `0 0 ${width} ${height}` };
  return drawing("svg", { ...size, lang: "zh-Hans" }, ...parts);
}
