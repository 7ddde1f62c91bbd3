// Characters otherwise: simplified ones as traditional, by the server's table read the other way, and how they are read.

const USUAL = // where the table has several, or where the simplified character is also a traditional one
  "里裏为為绿綠画畫烟煙岁歲尽盡闲閒发發面面台臺须須众眾绣繡钟鐘只只荡蕩艳艷别別绝絕说說鸡雞迹跡颜顏净淨历歷升升启啟" +
  "复復坛壇个個叹嘆并並参參系繫镇鎮药藥干干采采线線苏蘇蕴蘊鉴鑑团團墙牆宁寧恶惡赞讚雕雕冲沖泛泛尝嘗蒙蒙证證荫蔭" +
  "馆館术術汇匯胡胡产產弥彌湿濕凄淒袅裊勋勳溯溯钩鉤阅閱针針炼煉摆擺纤纖锤錘获獲镰鐮钻鑽饥飢录錄竖豎毁毀奖獎坝壩" +
  "锐銳么麼骂罵滟灩仑崙钵缽伪偽捣搗谣謠签籤镌鐫颓頹脏髒壳殼酝醞拐拐铲鏟赃贓谥謚哗嘩娴嫻锈鏽厕廁鳄鱷卤滷绷繃" +
  "千千秋秋家家同同出出真真彩彩曲曲才才志志回回松松游游卷卷佛佛峰峰杯杯欲欲教教向向修修合合斗斗群群幸幸谷谷弦弦念念" +
  "岳岳冬冬舍舍旗旗了了致致洒灑布布周周折折私私巨巨局局栖棲棋棋托托占占俊俊你你朱朱吃吃制制郁鬱累累席席夸誇困困克克" +
  "注注挽挽涂塗昆昆床床熏熏娘娘既既咸咸丑丑奸奸吊弔愈愈准準秘祕卜卜杆杆核核凶凶扣扣它它姜姜刮刮泄泄尸屍栗栗棱棱症症" +
  "范範后後云雲几幾余餘丰豐征征挂掛梁梁暗暗痴痴岩巖涌湧糖糖唇唇";
const IN_WORDS = // each a simplified word in which a character is another one than usually
  "千里千里 万里萬里 百里百里 十里十里 里程里程 故里故里 乡里鄉里 里巷里巷 皇后皇后 后羿后羿 后土后土 后稷后稷 太后太后 后妃后妃 王后王后 人云人云 云云云云 " +
  "子云子云 诗云詩云 白发白髮 华发華髮 头发頭髮 鬓发鬢髮 霜发霜髮 鹤发鶴髮 发丝髮絲 银发銀髮 青丝发青絲髮 面条麵條 汤面湯麵 树干樹幹 枝干枝幹 " +
  "骨干骨幹 才干才幹 能干能幹 干部幹部 干杯乾杯 干燥乾燥 未干未乾 不干不乾 晒干曬乾 轻松輕鬆 放松放鬆 蓬松蓬鬆 五谷五穀 谷物穀物 谷雨穀雨 " +
  "百谷百穀 稻谷稻穀 战斗戰鬥 奋斗奮鬥 斗艳鬥艷 斗志鬥志 斗争鬥爭 争斗爭鬥 斗雪鬥雪 斗芳鬥芳 献丑獻醜 美丑美醜 丑陋醜陋 茶几茶几 案几案几 几案几案 " +
  "象征象徵 特征特徵 钟情鍾情 钟爱鍾愛 钟灵鍾靈 龙钟龍鍾 钟馗鍾馗 重复重複 复杂複雜 日历日曆 农历農曆 皇历皇曆 新历新曆 旧历舊曆 天台天台 一只一隻 " +
  "几只幾隻 只身隻身 双只雙隻 世系世系 体系體系 关系關係 冲天衝天 冲霄衝霄 冲锋衝鋒 冲云衝雲 游子遊子 云游雲遊 游人遊人 漫游漫遊 神游神遊 旅游旅遊 春游春遊 " +
  "遨游遨遊 同游同遊 游客遊客 仙游仙遊 远游遠遊 采茶採茶 采莲採蓮 采菊採菊 采花採花 采药採藥 采桑採桑 卷帘捲簾 席卷席捲 漫卷漫捲 舒卷舒捲 云卷雲捲 " +
  "卷起捲起 不舍不捨 难舍難捨 取舍取捨 舍己捨己 舍生捨生 须眉鬚眉 龙须龍鬚 胡须鬍鬚 须发鬚髮 划船划船 划桨划槳 叮当叮噹 酒坛酒罈 馥郁馥郁 香郁香郁 浓郁濃郁 " +
  "范仲淹范仲淹 范蠡范蠡 抵御抵禦 防御防禦 御寒禦寒 丰姿丰姿 丰采丰采 丰神丰神 丰韵丰韻 精致精緻 别致別緻 雅致雅緻 昆仑崑崙 五岳五嶽 山岳山嶽 南岳南嶽 " +
  "东岳東嶽 西岳西嶽 北岳北嶽 河岳河嶽 画梁畫樑 栋梁棟樑 秋千鞦韆 宣布宣布 制造製造 特制特製 情系情繫 咸淡鹹淡 冲泡沖泡";
let table = null;
let readings = null;

/** The lines of one of the server's tables. */
async function linesOf(name) {
  const response = await fetch(document.documentElement.dataset[name]);
  if (!response.ok) throw new Error(`the table of ${name}: HTTP ${response.status}`);
  return (await response.text()).trim().split("\n");
}

/** Load how characters are read; there are no readings until the table is there. */
export async function loadPinyin() {
  if (readings !== null) return;
  const rows = (await linesOf("pinyin")).map((line) => line.split(" "));
  readings = new Map(rows.flatMap(([syllable, characters]) => [...characters].map((one) => [one, syllable])));
}

/** The reading of a character; empty where it has none. */
export const pinyin = (character) => readings?.get(character) ?? "";

/** Load the table of traditional characters; texts stay simplified until it is there. */
export async function loadTraditional() {
  if (table !== null) return;
  const [many, plain] = (await linesOf("characters")).map((line) => [...line]);
  const made = new Map();
  plain.forEach((one, at) => made.has(one) || made.set(one, many[at]));
  const usual = [...USUAL];
  for (let at = 0; at < usual.length; at += 2) made.set(usual[at], usual[at + 1]);
  const words = IN_WORDS.split(" ").map((both) => [both.slice(0, both.length / 2), both.slice(both.length / 2)]);
  table = { made, words, older: new Set(many.filter((one) => !plain.includes(one))) };
}

/** A text in traditional characters, as many as it has. */
export function traditional(text) {
  if (table === null) return text;
  const written = [...text].map((one) => table.made.get(one) ?? one);
  for (const [plain, older] of table.words) {
    for (let at = text.indexOf(plain); at >= 0; at = text.indexOf(plain, at + 1)) {
      written.splice([...text.slice(0, at)].length, older.length, ...older);
    }
  }
  return written.join("");
}

/** Whether a text has a character that is traditional alone, once the table is there. */
export const isTraditional = (text) => [...text].some((one) => table?.older.has(one));

/** What turns an answer into the script of a question; without the table answers stay simplified. */
export async function scriptOf(question) {
  await loadTraditional().catch(() => null);
  return isTraditional(question) ? traditional : (text) => text;
}
