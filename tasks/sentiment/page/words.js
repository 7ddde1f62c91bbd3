// The words of the sentiment tab in Chinese and in English. {name} is filled in.

import { vocabulary } from "../../page/language.js";

export const word = vocabulary({
  tab: ["褒贬", "Good or bad?"],
  lead: [
    "写一条评论，模型判断是好评还是差评，并指出由哪些字词看出来。",
    "Write a review: the model tells whether it is good or bad, and which words say so.",
  ],
  review: ["评论", "Review"],
  judge: ["判断", "Judge it"],
  judging: ["正在判断……", "Reading…"],
  legend: ["红色说好，蓝色说差，越深越有分量；不显颜色时，直线说好，波线说差。", "Red speaks for good, blue for bad; the darker, the more. Without colours a straight line is good and a wavy one bad."],
  seal_good: ["好评", "Good"],
  seal_bad: ["差评", "Bad"],
  seal_unclear: ["难说", "Unclear"],
  unclear: ["好坏说不准", "Good or bad: unclear"],
  good: ["好评，把握 {percent}", "Good, {percent} sure"],
  bad: ["差评，把握 {percent}", "Bad, {percent} sure"],
  empty: ["请先写一条评论。", "Write a review first, please."],
  refused_review_not_zh: ["里面没有中文，请用中文写评论。", "It has no Chinese word, and this model reads Chinese reviews."],
  refused_review_not_en: ["里面没有英文，请用英文写评论。", "It has no English word, and this model reads English reviews."],
});
