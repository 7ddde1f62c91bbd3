// Printing drawn sheets instead of the page; the browser's dialog makes a PDF of them, too.

import { byId } from "./elements.js";

const size = new CSSStyleSheet(); // of the paper, which no element can name
document.adoptedStyleSheets.push(size);
window.addEventListener("afterprint", clear);

/**
 * Open the print dialog for sheets of one size.
 * @param {Element[]} sheets drawings as large as the paper
 * @param {{width: number, height: number}} paper in millimetres
 */
export function printSheets(sheets, { width, height }) {
  size.replaceSync(`@page { size: ${Number(width)}mm ${Number(height)}mm; margin: 0; }`);
  byId("sheets").replaceChildren(...sheets);
  document.body.dataset.printed = "sheets";
  window.print();
}

function clear() {
  size.replaceSync("");
  byId("sheets").replaceChildren();
  delete document.body.dataset.printed;
}
