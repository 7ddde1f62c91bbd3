// The words of the translation tab in both languages. {name} is filled in.

import { vocabulary } from "../../page/language.js";

export const word = vocabulary({
  zh: {
    tab: "文言翻译",
    lead: "写一段文言，模型译成白话。",
    source: "文言",
    placeholder: "例如：太祖大悦，赐帛百匹。",
    translate: "翻译",
    translating: "正在翻译……",
    others: "其他译法",
    hint: "指着一个字，看它从哪里来、到哪里去。",
    translated: "译文：{text}",
    empty: "请先写一段文言。",
    modern: "这像是白话，模型读的是文言。",
    repeats: "译文有重复，不可靠。",
  },
  en: {
    tab: "Classical Chinese",
    lead: "Write Classical Chinese and the model turns it into modern Chinese.",
    source: "Classical Chinese (文言)",
    placeholder: "for example 太祖大悦，赐帛百匹。",
    translate: "Translate",
    translating: "Translating…",
    others: "Other translations",
    hint: "Point at a character to see where it comes from, or where it goes.",
    translated: "Translation: {text}",
    empty: "Write a text first, please.",
    modern: "This looks like modern Chinese; the model reads Classical Chinese.",
    repeats: "The translation repeats itself, so it is not to be trusted.",
  },
});
