// The words of the translation tab in Chinese and in English. {name} is filled in.

import { vocabulary } from "../../page/language.js";

export const word = vocabulary({
  tab: ["文言翻译", "Classical Chinese"],
  lead: ["写一段文言，模型译成白话。", "Write Classical Chinese and the model turns it into modern Chinese."],
  source: ["文言", "Classical Chinese (文言)"],
  placeholder: ["例如：太祖大悦，赐帛百匹。", "for example 太祖大悦，赐帛百匹。"],
  translate: ["翻译", "Translate"],
  translating: ["正在翻译……", "Translating…"],
  others: ["其他译法", "Other translations"],
  hint: ["指着一个字（或用方向键），看它从哪里来、到哪里去。", "Point at a character, or go to it by the arrow keys, to see where it comes from or where it goes."],
  translated: ["译文：{text}", "Translation: {text}"],
  empty: ["请先写一段文言。", "Write a text first, please."],
  refused_text_not_chinese: ["“{text}”里没有汉字，请写一段文言。", "{text} has no Chinese character; write Chinese."],
  refused_sentence_long: [
    "有一句长 {length} 个字，这个模型最多读 {limit} 个，请断开。",
    "A sentence has {length} characters and this model reads up to {limit}; cut it.",
  ],
  modern: ["这像是白话，模型读的是文言。", "This looks like modern Chinese; the model reads Classical Chinese."],
  repeats: ["译文有重复，不可靠。", "The translation repeats itself, so it is not to be trusted."],
});
