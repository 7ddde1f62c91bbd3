// The words of the poem tab in Chinese and in English. {name} is filled in.

import { vocabulary } from "../../page/language.js";

export const word = vocabulary({
  tab: ["作诗", "Poem"],
  lead: [
    "给一个开头、题目或藏头的字，模型写成一首诗。",
    "Give a beginning, a title, or the first characters of the lines, and the model writes a poem.",
  ],
  form: ["体裁", "Form"],
  form_any: ["不限", "any"],
  form_五绝: ["五绝", "五绝, a five-character quatrain"],
  form_七绝: ["七绝", "七绝, a seven-character quatrain"],
  form_五律: ["五律", "五律, eight five-character lines"],
  form_七律: ["七律", "七律, eight seven-character lines"],
  textsAre: ["给出的是", "The text is"],
  begin: ["开头", "a beginning"],
  acrostic: ["藏头", "an acrostic"],
  title: ["题目", "a title"],
  label_begin: ["诗的开头（可以不填）", "How the poem begins (may be empty)"],
  label_acrostic: ["每句的第一个字", "The first character of each line"],
  label_title: ["诗的题目", "The title of the poem"],
  write: ["作诗", "Write"],
  writing: ["正在写……", "Writing…"],
  written: ["写好了：{text}", "Written: {text}"],
  before: ["前一首", "The one before"],
  after: ["后一首", "The next one"],
  emptyTitle: ["请先写一个题目。", "Write a title, please."],
  again: ["再写一首", "Another one"],
  tones: ["平仄合律", "tones kept"],
  notTones: ["平仄不合", "tones broken"],
  rhyme: ["押韵", "rhymes"],
  notRhyme: ["不押韵", "does not rhyme"],
  scroll: ["诗轴", "The scroll"],
  refused_beginning_long: [
    "开头有 {length} 个字，最多 {limit} 个，请写短一些。",
    "The beginning has {length} characters and {limit} are the most; shorten it.",
  ],
  refused_verse_not_chinese: ["“{text}”里没有汉字，请写中文。", "{text} has no Chinese character; write Chinese."],
  refused_acrostic_lines: ["藏头的字要一到八个汉字。", "An acrostic needs 1 to 8 Chinese characters, one a line."],
  writtenTo: ["按“{title}”来写", "written to the title {title}"],
  unknownTitle: ["模型没读过这样的诗，未必切题", "the model knows no verse of this"],
});
