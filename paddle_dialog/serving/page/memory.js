// What the browser remembers: "localStorage" for good, "sessionStorage" until its tab is closed. It may forbid it.

/** What was kept under a name; null where there is nothing. */
export function recall(storage, name) {
  try {
    return JSON.parse(window[storage].getItem(name));
  } catch {
    return null; // forbidden, or not ours
  }
}

/** Keep something under a name; false where the browser does not. */
export function remember(storage, name, value) {
  try {
    window[storage].setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false; // forbidden, or full
  }
}
