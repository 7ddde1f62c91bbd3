// Copying, even where the page has no access to the clipboard because it is not served over TLS.

import { element } from "./elements.js";

/** Copy a text; false if the browser refuses. */
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
