// What the server says to people, in Chinese; it speaks English alone, for programs too.

const SAID = [
  [/^the name '(.*)' has (\d+) characters; up to (\d+)/u, "名字“$1”有 $2 个字，最多嵌 $3 个。"],
  [/^the name '(.*)' has a character that is not/u, "名字“$1”里有不是汉字的，请写成“李明”这样。"],
  [/^theme: '(.*)' has a character that is not/u, "主题“$1”里有不是汉字的，请写成“春节”这样。"],
  [/^theme: '(.*)' has (\d+) characters; give words of up to (\d+)/u, "主题“$1”有 $2 个字；一个词最多 $3 个字，词与词空一格。"],
  [/^theme: (\d+) words; .* has room for (\d+)/u, "写了 $1 个主题，一副对联最多容得下 $2 个。"],
  [/^theme: '(.*)' finds no room/u, "主题“$1”放不进这么短的句子，请选长一些的字数。"],
  [/has a word that this server does not take/u, "里面有本站不收的词，请换一种说法。"],
  [/has a word that this server does not write/u, "写出来的都有本站不用的词，请换一句再试。"],
  [/a turn may have ([\d,]+) characters/u, "一句话最多 $1 个字，请说短一些。"],
  [/has (\d+) characters, and this model reads up to (\d+)/u, "有 $1 个字，这个模型最多读 $2 个，请写短一些。"],
  [/^context: /u, "已经谈了很久，请重新开始。"],
  [/has no Chinese character/u, "里面没有汉字，请写中文。"],
  [/4 or 8 hanzi/u, "藏头的字要四个或八个。"],
];

/** A sentence of the server in Chinese; null where it is none that people commonly see. */
export function inChinese(sentence) {
  const [known, told] = SAID.find(([one]) => one.test(sentence)) ?? [];
  return known === undefined ? null : sentence.match(known).reduce((text, part, at) => text.replace(`$${at}`, () => part), told);
}
