// The 32 emotions of EmpatheticDialogues with their Chinese names.

const CHINESE = {
  afraid: "害怕", angry: "生气", annoyed: "恼火", anticipating: "盼望", anxious: "焦虑", apprehensive: "忐忑",
  ashamed: "羞愧", caring: "关怀", confident: "自信", content: "满足", devastated: "悲痛欲绝", disappointed: "失望",
  disgusted: "厌恶", embarrassed: "尴尬", excited: "兴奋", faithful: "忠诚", furious: "愤怒", grateful: "感激",
  guilty: "内疚", hopeful: "充满希望", impressed: "钦佩", jealous: "嫉妒", joyful: "喜悦", lonely: "孤独",
  nostalgic: "怀旧", prepared: "有准备", proud: "自豪", sad: "悲伤", sentimental: "感伤", surprised: "惊讶",
  terrified: "恐惧", trusting: "信任",
};

/** The labels as the model knows them, in alphabetical order. */
export const EMOTIONS = Object.keys(CHINESE);

/** An emotion's name in a language; a label that is not of the 32 stands for itself. */
export function emotionName(label, language) {
  return language === "zh" ? (Object.hasOwn(CHINESE, label) ? CHINESE[label] : label) : label;
}
