// The words of the conversation tab in Chinese and in English. {name} is filled in.

import { vocabulary } from "../../page/language.js";

export const word = vocabulary({
  tab: ["谈心", "Conversation"],
  lead: [
    "说说近况，它会猜你的心情，陪你聊几句。它是个小程序，读得少，不懂世事。",
    "Tell it how you are: it guesses what you feel, and answers. It is a small program that has read little and knows nothing of the world.",
  ],
  notice: [
    "需要有人帮助，请拨打心理援助热线 12356；有危险，请拨打 120 或 110，或当地的急救电话。回应你的是一个语言模型，不是心理咨询师，也不是医生：它会说错话，也应付不了紧急情况。",
    "If you need somebody, call or text 988 in the US, 116 123 in the UK and Ireland, 12356 in China; in danger call your local emergency services. What answers here is a language model, no counsellor and no doctor: it can be wrong, and it is of no help in an emergency.",
  ],
  onlyEnglish: ["这台服务器上的模型只懂英文，请用英文跟它说。", "The model of this server knows English only."],
  onlyChinese: [
    "这台服务器上的模型只懂中文，请用中文跟它说。",
    "The model of this server knows Chinese only; please write Chinese.",
  ],
  fixedAnswer: ["这段话是固定的，不是模型写的。", "This text is fixed; no model wrote it."],
  yourTurn: ["你说", "You say"],
  turnPlaceholder: ["例如：{example}", "for example: {example}"],
  turnNext: ["接着说……", "Go on…"],
  send: ["发送", "Send"],
  listening: ["正在听……", "Listening…"],
  undo: ["撤回一轮", "Take back"],
  undoReset: ["恢复刚才的谈话", "Bring the talk back"],
  copyBubble: ["复制这句话", "Copy this"],
  talk: ["谈心", "conversation"],
  reset: ["重新开始", "Start over"],
  you: ["你", "You"],
  listener: ["模型", "Model"],
  felt: ["感到的心情", "What it felt"],
  feltHint: ["它感到的心情，不对就点一个：", "What it felt; choose another if it is wrong:"],
  chooseOne: ["说说心情……", "Say what you feel…"],
  given: ["{emotion}（你说的）", "{emotion}, as you said"],
  chooseEmotion: ["当作“{emotion}”重新回应", "Answer as if it were “{emotion}”"],
  otherEmotion: ["改为其他心情……", "Another emotion…"],
  asFelt: ["按它自己的判断", "As it felt itself"],
  otherReplies: ["换一句", "Something else"],
  takeReply: ["换成这一句", "Take this reply"],
  replied: ["它感到：{emotion}。回应：{text}", "It felt: {emotion}. Reply: {text}"],
  repliedOnly: ["回应：{text}", "Reply: {text}"],
  emptyTurn: ["请先说点什么。", "Say something first, please."],
  refused_emotion_unknown: ["这个模型不认识情绪“{emotion}”。", "This model knows no emotion {emotion}."],
  refused_turn_long: [
    "一句话最多 {limit} 个字，请说短一些。",
    "A turn may have {limit} characters at most; say it more shortly.",
  ],
});
