// Lines written downwards, as the door, the picture and the printed sheets have them.

const ROWS = 12; // characters of a column before a second one begins
const CORNER = /[，。、；：！？]/u; // stands in the upper right of its place
const TURNED = /[（）《》〈〉「」『』【】—…～]/u;
const SHARE = { height: 0.92, width: 0.86 }; // of the paper, that is written on

/** The fonts, from those that a machine may have. */
export const FONTS = {
  kai: '"STKaiti", "Kaiti SC", "KaiTi", "AR PL UKai CN", "Noto Serif CJK SC", "Songti SC", "SimSun", serif',
  song: '"Songti SC", "STSong", "SimSun", "Source Han Serif SC", "Noto Serif CJK SC", "AR PL UMing CN", serif',
};
export const INKS = {
  black: { paper: ["#d8392b", "#c52c22"], text: "#1c0f0a", gold: "#e9b949" },
  gold: { paper: ["#b3201b", "#991512"], text: "#f8d88a", gold: "#e9b949" },
};

/** The columns that the longer of two lines takes, and the characters in each. */
export function columnsOf(...lines) {
  const longest = Math.max(...lines.map((line) => [...line].length));
  const columns = Math.max(1, Math.ceil(longest / ROWS));
  return { longest, columns, rows: Math.ceil(longest / columns) };
}

/**
 * Where each character of a line stands on its paper.
 * @param {string} line
 * @param {{width: number, height: number}} paper
 * @param {{columns: number, rows: number}} grid
 * @param {1|-1} direction in which the columns follow each other: -1 to the left
 * @returns {{character: string, x: number, y: number, size: number, isTurned: boolean}[]} x and y are the middle
 */
export function downwards(line, paper, { columns, rows }, direction) {
  const pitch = (paper.height * SHARE.height) / rows;
  const column = (paper.width * SHARE.width) / columns;
  const size = Math.min(pitch / 1.12, column / 1.06);
  return [...line].map((character, place) => {
    const from = Math.floor(place / rows) - (Math.ceil([...line].length / rows) - 1) / 2;
    const shift = CORNER.test(character) ? size / 2 : 0;
    return {
      character,
      x: paper.width / 2 + direction * from * column + shift,
      y: (paper.height * (1 - SHARE.height)) / 2 + ((place % rows) + 0.5) * pitch - shift,
      size,
      isTurned: TURNED.test(character),
    };
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
    isTurned: false,
  }));
}
