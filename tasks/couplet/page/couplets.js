// The server's answers as couplets, whatever was asked.

import { ApiError } from "../../page/api.js";
import { unmarked } from "../../page/brush.js";

/**
 * A couplet of the page.
 * @typedef {object} Couplet
 * @property {string} first 上联
 * @property {string} second 下联
 * @property {"first"|"second"|"both"|null} written what the model wrote of it; null where a person wrote both lines
 * @property {{first: string[], second: string[]}} tones of each character
 * @property {object} [form] the rules it keeps; absent where the server cannot say
 * @property {number} [score]
 * @property {string[]} [relaxed] rules that were given up
 * @property {string[]} [broken] rules that a person's lines do not keep
 * @property {number} [set] of several couplets that carry one long name, and `part`, the place in it
 * @property {{first: string, second: string, distance: number}} [known] the nearest pair of the training corpus
 * @property {string} [scroll] 横批
 * @property {string[]} [scrolls] from which to choose one
 * @property {string} [ownScroll] written by a person in its place
 * @property {string} [theme] what it was asked for
 * @property {string} [ground] the paper that somebody chose for it
 * @property {Couplet} [original] before somebody changed it by hand
 */

/** The couplets of an answer of /v1/couplet, which has the given line once. */
export function answeredCouplets(answer, given) {
  const written = given === "first" ? "second" : "first";
  return some(answer.predictions).map(({ text, ...rest }, place) => ({
    ...rest,
    [given]: answer.line,
    [written]: text,
    written,
    tones: { [given]: answer.tones?.[given] ?? [], [written]: answer.tones?.[written]?.[place] ?? [] },
  }));
}

/** The couplets of an answer of /v1/compose. */
export function composedCouplets(answer) {
  return some(answer.couplets).map((couplet, place) => ({
    ...couplet,
    written: "both",
    tones: { first: answer.tones?.first?.[place] ?? [], second: answer.tones?.second?.[place] ?? [] },
  }));
}

/** A couplet that a person wrote or kept, of which nothing is known yet. */
export const ownCouplet = (first, second, scroll, ground) => ({
  first,
  second,
  scroll,
  ground,
  written: null,
  tones: { first: [], second: [] },
});

/** A couplet with characters of one line replaced from a place on; what was said of the former does not hold for it. */
export function changed(couplet, side, place, characters) {
  const line = [...couplet[side]];
  const tones = { ...couplet.tones, [side]: [...couplet.tones[side]] };
  const places = [...line.keys()].filter((at) => at >= place && unmarked(line[at]).length > 0);
  characters.slice(0, places.length).forEach((character, at) => {
    if (line[places[at]] === character) return;
    line[places[at]] = character;
    tones[side][places[at]] = "unknown";
  });
  const { score, known, relaxed, broken, original = couplet, ...rest } = couplet;
  const made = { ...rest, [side]: line.join(""), tones, original };
  return made.first === original.first && made.second === original.second ? original : made;
}

function some(found) {
  if (!found?.length) throw new ApiError("nothing");
  return found;
}
