// Lines written downwards on papers for an occasion, as the door, the picture and the printed sheets have them.

import { INK, unmarked, XUAN } from "../../page/brush.js";

const ROWS = 12; // characters of a column before a second one begins
const SHARE = { height: 0.92, width: 0.86 }; // of the paper, that is written on
const RED = { black: ["#ee4c3d", "#e8402f"], gold: ["#b3201b", "#991512"] }; // of the paper, for each ink
const GOLD = "#ffe09a";

/** The papers by name: the colours for each ink they take, their edge, and what hangs on the door. */
export const GROUNDS = {
  gold: { colours: RED, edge: "#f3c85f", flecks: "rgb(255 214 120 / 50%)", luck: "福", wall: ["#e6d8c0", "#7d4a2b"] },
  red: { colours: RED, edge: null, flecks: null, luck: "福", wall: ["#e6d8c0", "#7d4a2b"] },
  double: { colours: RED, edge: "#f3c85f", flecks: "rgb(255 214 120 / 30%)", luck: "囍", wall: ["#eddccb", "#8c2f24"] },
  xuan: { colours: { black: XUAN }, edge: null, flecks: null, luck: null, wall: ["#dcd9ca", null] },
  white: { colours: { black: ["#ffffff", "#f3f3ef"] }, edge: "#b9b9b2", flecks: null, luck: null, wall: ["#d9d8d3", "#4d4843"] },
};

/** The colour of an ink. */
export const inkColour = (ink) => (ink === "gold" ? GOLD : INK);

// Which paper an occasion wants, by the words of its theme or of its lines; the first that has one is taken.
const OF_THEMES = {
  white:
    "挽 悼 丧 奠 吊唁 清明 祭祖 祭奠 祭祀 祭拜 公祭 扫墓 上坟 追思 追念 缅怀 哀思 哀悼 " +
    "怀念先 逝 遗像 灵堂 灵前 墓 殡 葬 忌日 中元 寒衣 先烈 烈士",
  double: "婚 嫁 娶 新郎 新娘 喜结 良缘",
  xuan: "书房 书斋 山水 茶 禅 隐 读书 书法 绘画 琴 棋 文人 学习 志向",
};
const OF_LINES = {
  white:
    "音容 驾鹤 仙逝 九泉 黄泉 泉台 永垂 痛失 哀思 哀悼 悼 追思 缅怀 挽歌 英灵 英魂 忠魂 遗容 遗像 灵前 灵堂 " +
    "长眠 魂归 招魂 青冢 孤冢 荒冢 孤坟 荒坟 新坟 坟前 坟头 墓前 墓碑 扫墓 祭扫 祭奠 纸钱 冥钱 白幡 慈容",
  double: "新婚 花烛 洞房 佳偶 鸾凤 连理 并蒂 百年好合 琴瑟和 新郎 新娘",
};
const OCCASIONS = [OF_THEMES, OF_LINES].map((table) =>
  Object.entries(table).map(([ground, words]) => [ground, new RegExp(words.replaceAll(" ", "|"), "u")]),
);

/** The paper for what a couplet is about. */
export function groundFor(theme, lines) {
  const [found] = [theme, lines].flatMap((text, at) => OCCASIONS[at].filter(([, words]) => words.test(text)));
  return found?.[0] ?? "gold";
}

/** The columns that the longer of two lines takes, and the characters in each; marks are not written. */
export function columnsOf(...lines) {
  const longest = Math.max(...lines.map((line) => unmarked(line).length));
  const columns = Math.max(1, Math.ceil(longest / ROWS));
  return { longest, columns, rows: Math.ceil(longest / columns) };
}

/**
 * Where each character of a line stands on its paper.
 * @param {string} line
 * @param {{width: number, height: number}} paper
 * @param {{columns: number, rows: number}} grid
 * @param {1|-1} direction in which the columns follow each other: -1 to the left
 * @returns {{character: string, x: number, y: number, size: number}[]} x and y are the middle
 */
export function downwards(line, paper, { columns, rows }, direction) {
  const pitch = (paper.height * SHARE.height) / rows;
  const column = (paper.width * SHARE.width) / columns;
  const size = Math.min(pitch / 1.12, column / 1.06);
  const characters = unmarked(line);
  return characters.map((character, place) => {
    const from = Math.floor(place / rows) - (Math.ceil(characters.length / rows) - 1) / 2;
    const y = (paper.height * (1 - SHARE.height)) / 2 + ((place % rows) + 0.5) * pitch;
    return { character, x: paper.width / 2 + direction * from * column, y, size };
  });
}

/** Where each character of a 横批 stands; it is read from the right, as the lines hang. */
export function leftwards(scroll, paper) {
  const characters = [...scroll];
  const pitch = (paper.width * SHARE.height) / characters.length;
  const size = Math.min(pitch / 1.12, paper.height * SHARE.width);
  return characters.map((character, place) => ({
    character,
    x: paper.width * (1 - (1 - SHARE.height) / 2) - (place + 0.5) * pitch,
    y: paper.height / 2,
    size,
  }));
}
