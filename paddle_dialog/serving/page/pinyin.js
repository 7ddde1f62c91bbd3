// How characters are read, for people who read no Chinese.

let table = null;

/** Load the readings; there are none until they are there. */
export async function loadPinyin() {
  if (table !== null) return;
  table = new Map();
  const response = await fetch(document.documentElement.dataset.pinyin);
  if (!response.ok) throw new Error(`the table of pinyin: HTTP ${response.status}`);
  for (const line of (await response.text()).trim().split("\n")) {
    const [syllable, characters] = line.split(" ");
    for (const character of characters) table.set(character, syllable);
  }
}

/** The reading of a character; empty where it has none. */
export const pinyin = (character) => table?.get(character) ?? "";
