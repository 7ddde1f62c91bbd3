// The words of the sentiment tab in both languages. {name} is filled in.

import { vocabulary } from "../../page/language.js";

export const word = vocabulary({
  zh: {
    tab: "褒贬",
    lead: "写一条评论，模型判断是好评还是差评，并指出由哪些字词看出来。",
    review: "评论",
    judge: "判断",
    judging: "正在判断……",
    legend: "红色说好，蓝色说差，越深越有分量。",
    seal_good: "好评",
    seal_bad: "差评",
    seal_unclear: "难说",
    unclear: "好坏说不准",
    good: "好评，把握 {percent}",
    bad: "差评，把握 {percent}",
    empty: "请先写一条评论。",
  },
  en: {
    tab: "Good or bad?",
    lead: "Write a review: the model tells whether it is good or bad, and which words say so.",
    review: "Review",
    judge: "Judge it",
    judging: "Reading…",
    legend: "Red speaks for good, blue for bad; the darker, the more.",
    seal_good: "Good",
    seal_bad: "Bad",
    seal_unclear: "Unclear",
    unclear: "Good or bad: unclear",
    good: "Good, {percent} sure",
    bad: "Bad, {percent} sure",
    empty: "Write a review first, please.",
  },
});
