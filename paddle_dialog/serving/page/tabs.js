// The two tasks as tabs; the address remembers which one is open.

import { byId } from "./elements.js";

/** Connects the tabs; `names` are the ids of their panels. */
export function startTabs(names) {
  names.forEach((name, place) => {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => {
      history.replaceState(null, "", `#${name}`);
      open(names, name);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = byId(`tab-${names[(place + step + names.length) % names.length]}`);
      next.focus();
      next.click();
    });
  });
  const openAddressed = () => {
    const asked = location.hash.slice(1);
    open(names, names.includes(asked) ? asked : names[0]);
  };
  window.addEventListener("hashchange", openAddressed);
  openAddressed();
}

function open(names, chosen) {
  for (const name of names) {
    const isOpen = name === chosen;
    const tab = byId(`tab-${name}`);
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    byId(name).hidden = !isOpen;
  }
}
