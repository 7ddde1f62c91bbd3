// Files that the page hands over to be kept.

import { element } from "./elements.js";

/** Have the browser save a blob under a name. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
