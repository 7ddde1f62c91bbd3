// The words of the translation tab in both languages. {name} is filled in.

import { vocabulary } from "../../page/language.js";

export const word = vocabulary({
  zh: {
    tab: "文言翻译",
    lead: "写一段文言，模型译成白话。",
    source: "文言",
    placeholder: "例如：学而时习之，不亦说乎？",
    translate: "翻译",
    translating: "正在翻译……",
    others: "其他译法",
    looked: "译每个字时看了哪里",
    translated: "译文：{text}",
    empty: "请先写一段文言。",
  },
  en: {
    tab: "Classical Chinese",
    lead: "Write Classical Chinese and the model turns it into modern Chinese.",
    source: "Classical Chinese (文言)",
    placeholder: "for example 学而时习之，不亦说乎？",
    translate: "Translate",
    translating: "Translating…",
    others: "Other translations",
    looked: "Where it looked for each character",
    translated: "Translation: {text}",
    empty: "Write a text first, please.",
  },
});
