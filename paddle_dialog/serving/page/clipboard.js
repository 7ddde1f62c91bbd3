// Copying, also where the page is not served over TLS and the clipboard is closed to it.

import { element } from "./elements.js";

/** Copies a text; false where the browser does not let it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
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
