// What the page hands over: a text copied, a file saved, sheets printed.

import { byId, element } from "./elements.js";

const size = new CSSStyleSheet(); // of the paper, which no element can name
document.adoptedStyleSheets.push(size);
window.addEventListener("afterprint", clear);

/** Copy a text; false if the browser refuses. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Have the browser save a blob under a name. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

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

function copySelected(text) {
  const before = document.activeElement;
  const field = element("textarea", { class: "unseen", readonly: true });
  field.value = text;
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
    before?.focus();
  }
}

function clear() {
  size.replaceSync("");
  byId("sheets").replaceChildren();
  delete document.body.dataset.printed;
}
