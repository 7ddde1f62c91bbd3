// The tabs: each comes from the folder of its task; the address remembers which one is open.

import { byId, element } from "./elements.js";
import { addWords, onLanguage, word } from "./language.js";

const panels = [...document.querySelectorAll("[role=tabpanel]")];
const tasks = panels.map((panel) => panel.id);
const words = new Map();

/** The name of a task in the page. */
export const tabName = (task) => words.get(task)?.("tab") ?? task;

/** Connect the tabs and load what is in them. */
export async function startTabs() {
  tasks.forEach((task, place) => {
    const tab = byId(`tab-${task}`);
    tab.addEventListener("click", () => {
      history.replaceState(null, "", `#${task}`);
      open(task);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = byId(`tab-${tasks[(place + step + tasks.length) % tasks.length]}`);
      next.focus();
      next.click();
    });
  });
  const openAddressed = () => {
    const asked = location.hash.slice(1);
    open(tasks.includes(asked) ? asked : tasks[0]);
  };
  window.addEventListener("hashchange", openAddressed);
  openAddressed();
  onLanguage(drawNames);
  await Promise.all(panels.map(load));
  drawNames();
}

/** Load a tab; one that is broken says so and leaves the others alone. */
async function load(panel) {
  const folder = `../tasks/${panel.id}`;
  try {
    const [{ word: own }, { start }] = await Promise.all([import(`${folder}/words.js`), import(`${folder}/tab.js`)]);
    words.set(panel.id, own);
    addWords(panel, own);
    start();
  } catch (error) {
    panel.replaceChildren(element("p", { class: "error", role: "alert" }, word("tabFailed")));
    reportError(error);
  }
}

function drawNames() {
  for (const task of tasks) byId(`tab-${task}`).textContent = tabName(task);
}

function open(chosen) {
  for (const task of tasks) {
    const isOpen = task === chosen;
    const tab = byId(`tab-${task}`);
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    byId(task).hidden = !isOpen;
  }
}
