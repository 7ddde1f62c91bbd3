// The brush: its fonts, and what every picture is drawn of — characters, seals, 宣纸 and its mounting, the caption.

import { byId, element } from "./elements.js";

const KAI = '"STKaiti", "Kaiti SC", "KaiTi", "Dialog Kai", "AR PL UKai CN", serif';
/** The fonts by name; those of this page are loaded slice by slice, for the characters that are shown. */
export const FONTS = {
  brush: `"Dialog Brush", ${KAI}`,
  kai: `"Dialog Kai", ${KAI}`,
  song: '"Songti SC", "STSong", "SimSun", "Source Han Serif SC", "Noto Serif CJK SC", "AR PL UMing CN", serif',
};
export const INK = "#16100c";
export const CINNABAR = "#b3241d";
export const XUAN = ["#faf5e8", "#efe6d1"];
const MARKS = /[\p{P}\p{S}\s]/u;
export const HAN = /\p{Script=Han}/u;

/** The characters of a text without its marks, which are not written on paper. */
export const unmarked = (text) => [...text].filter((character) => !MARKS.test(character));

const NEXT = { brush: "kai", kai: "song" }; // of a line that a font has not all characters of
const FAMILIES = { brush: "Dialog Brush", kai: "Dialog Kai" };
const covered = {}; // of each font of this page the ranges of its characters, once its styles are there

/** The font that has all characters of a line: the one that is wanted, or the next that has them. */
export function handFor(line, font) {
  if (!(font in NEXT)) return font;
  covered[font] ??= rangesOf(FAMILIES[font]);
  const has = (character) => covered[font].some(([from, to]) => from <= character.codePointAt() && character.codePointAt() <= to);
  return covered[font] === undefined || unmarked(line).every(has) ? font : handFor(line, NEXT[font]);
}

function rangesOf(family) {
  const faces = [...document.fonts].filter((face) => face.family.replaceAll('"', "") === family);
  const ranges = faces.flatMap(({ unicodeRange }) => unicodeRange.split(",").map((range) => range.trim().slice(2).split("-")));
  if (ranges.length === 0) return undefined;
  return ranges.map(([from, to = from]) => [Number.parseInt(from, 16), Number.parseInt(to, 16)]);
}

/** Call `redraw` when the fonts of this page are known. */
export function onFonts(redraw) {
  byId("fonts").addEventListener("load", () => redraw());
}

/** Write one character around its middle. */
export function write(context, character, x, y, size, font, colour) {
  context.font = `${font === "song" ? 600 : 400} ${size}px ${FONTS[font]}`;
  context.fillStyle = colour;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = context.measureText("永");
  context.fillText(character, x, y + (up - down) / 2);
}

/** Write the characters of a line down from y. */
export function writeDown(context, text, x, y, size) {
  const font = handFor(text, "kai");
  [...text].forEach((character, at) => write(context, character, x, y + (at + 0.5) * size * 1.16, size, font, INK));
}

/** A box of paper, its light from the upper left, with a shadow on what is below it. */
export function layPaper(context, { x, y, width, height }, [light, dark] = XUAN) {
  const shade = context.createLinearGradient(x, y, x + width, y + height);
  shade.addColorStop(0, light);
  shade.addColorStop(1, dark);
  context.save();
  context.shadowColor = "rgb(60 30 10 / 40%)";
  context.shadowBlur = 20;
  context.shadowOffsetY = 7;
  context.fillStyle = shade;
  context.fillRect(x, y, width, height);
  context.restore();
}

/** A hanging scroll around a box: silk above and below, a rod at either end. */
export function mount(context, { x, y, width, height }) {
  const silk = Math.min(90, height * 0.1);
  layPaper(context, { x: x - 14, y: y - silk, width: width + 28, height: height + 2 * silk }, ["#d6d3c1", "#c4c0ab"]);
  for (const end of [y - silk - 8, y + height + silk - 8]) {
    layPaper(context, { x: x - 34, y: end, width: width + 68, height: 16 }, ["#7d4a2b", "#4a2a18"]);
  }
}

/** Flecks over a box, the same in every picture. */
export function scatter(context, { x, y, width, height }, colour, share) {
  context.fillStyle = colour;
  let seed = 7;
  for (let fleck = 0; fleck < (width * height) / share; fleck += 1) {
    const [a, b, c] = [0, 0, 0].map(() => (seed = (seed * 16807) % 2147483647) / 2147483647);
    context.fillRect(x + a * (width - 5), y + b * (height - 4), 1.5 + 3 * c, 1.5 + 2 * c);
  }
}

/** A seal of one to four characters, white in cinnabar, read down and from the right. */
export function stamp(context, text, x, y, size) {
  const characters = [...text].slice(0, 4);
  const columns = characters.length > 2 ? 2 : 1;
  const rows = Math.ceil(characters.length / columns);
  const width = columns === 1 && rows > 1 ? size * 0.56 : size;
  context.fillStyle = CINNABAR;
  context.beginPath();
  context.roundRect(x + size - width, y, width, size, size * 0.09);
  context.fill();
  const [column, row] = [width / columns, size / rows];
  const own = Math.min(column, row) * 0.86;
  const font = handFor(text, "kai");
  characters.forEach((character, at) => {
    const isAlone = characters.length === 3 && at === 2;
    const middle = isAlone ? y + size / 2 : y + ((at % rows) + 0.5) * row;
    write(context, character, x + size - (Math.floor(at / rows) + 0.5) * column, middle, own, font, "#fff6ea");
  });
}

/** The seal's characters: those of who signs, else the page's. */
const sealOf = (name) => (unmarked(name).filter((one) => HAN.test(one)).slice(0, 4).join("") || "笔谈");

/** The day as it is written under a picture, e.g. 丙午年十月; empty where the browser does not know it. */
function today() {
  const parts = new Intl.DateTimeFormat("zh-u-ca-chinese", { year: "numeric", month: "long" }).formatToParts(new Date());
  const said = (kind) => parts.find(({ type }) => type === kind)?.value ?? "";
  return said("yearName") === "" ? "" : `${said("yearName")}年${said("month")}`;
}

const SIZE = { width: 1080, height: 1440 }; // of a picture, in pixels
/** Where its scene is, within a mat of paper. */
export const SCENE = { x: 44, y: 44, width: 992, height: 1264 };

/**
 * Draw a picture, with the day, who signs it and a seal in the lower right corner.
 * @param {string} text its characters, whose slices of the fonts are waited for
 * @param {string} name who signs it; may be empty
 * @param {(context: CanvasRenderingContext2D) => ?Promise<void>} drawScene
 * @returns {Promise<HTMLCanvasElement>}
 */
export async function drawPicture(text, name, drawScene) {
  const late = new Promise((done) => setTimeout(done, 8000)); // then it is drawn with what there is
  const written = text + name + today() + sealOf(name);
  const fonts = Object.values(FAMILIES).map((family) => document.fonts.load(`20px "${family}"`, written));
  await Promise.race([Promise.all(fonts), late]);
  const canvas = element("canvas", SIZE);
  const context = canvas.getContext("2d");
  layPaper(context, { x: 0, y: 0, ...SIZE });
  await drawScene(context);
  const [right, y] = [SCENE.x + SCENE.width, SIZE.height - 66];
  stamp(context, sealOf(name), right - 76, y - 38, 76);
  context.font = `400 40px ${FONTS[handFor(name, "kai")]}`;
  context.fillStyle = "#5a4a3c";
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText([today(), name].filter(Boolean).join("　"), right - 100, y);
  return canvas;
}
