// The tabs: each comes from the folder of its task; the address names the open one and what it shows.

import { byId, element } from "./elements.js";
import { addWords, onLanguage, word } from "./language.js";

const panels = [...document.querySelectorAll("[role=tabpanel]")];
const tasks = panels.map((panel) => panel.id);
const words = new Map();
const queries = new Map(); // what the address says of each tab
const listeners = new Map();

/** The name of a task in the page. */
export const tabName = (task) => words.get(task)?.("tab") ?? byId(`tab-${task}`)?.textContent ?? task;

/** The address of what a tab shows, for somebody else to open. */
export const linkTo = (task, values) => `${location.origin}${location.pathname}${fragment(task, values)}`;

/** Say in the address what a tab shows, `values` by name, so that it can be opened again. */
export function setAddress(task, values) {
  queries.set(task, fragment(task, values));
  if (!byId(task).hidden) history.replaceState(null, "", queries.get(task));
}

/** Call `show` with the values that the address has for a tab, now and whenever somebody goes to another address. */
export function onAddress(task, show) {
  listeners.set(task, show);
  if (taskOf(location.hash) === task) show(valuesOf(location.hash));
}

/** Connect the tabs and load what is in them. */
export async function startTabs() {
  tasks.forEach((task, place) => {
    const tab = byId(`tab-${task}`);
    tab.addEventListener("click", () => {
      if (taskOf(location.hash) !== task) history.pushState(null, "", queries.get(task) ?? `#${task}`);
      open(task);
    });
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: -1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = byId(`tab-${tasks.at(to % tasks.length)}`);
      next.focus();
      next.click();
    });
  });
  window.addEventListener("popstate", () => {
    const task = taskOf(location.hash);
    open(task);
    if (location.hash !== (queries.get(task) ?? `#${task}`)) listeners.get(task)?.(valuesOf(location.hash));
  });
  open(taskOf(location.hash));
  onLanguage(drawNames);
  await Promise.all(panels.map(load));
  drawNames();
}

const taskOf = (hash) => tasks.find((task) => task === hash.slice(1).split("?")[0]) ?? tasks[0];
const valuesOf = (hash) => Object.fromEntries(new URLSearchParams(hash.split("?")[1] ?? ""));

function fragment(task, values) {
  const given = Object.entries(values).filter(([, value]) => value);
  return given.length === 0 ? `#${task}` : `#${task}?${new URLSearchParams(given)}`;
}

/** Load a tab; one that is broken says so and leaves the others alone. */
async function load(panel) {
  const name = `tasks_${panel.id.replace(/\W/g, "_")}`;
  try {
    const modules = await import(new URL(panel.dataset.module, document.baseURI));
    const { word: own } = modules[`${name}_words`];
    words.set(panel.id, own);
    modules[`${name}_tab`].start();
    addWords(panel, own); // also into what the tab has made
  } catch (error) {
    panel.replaceChildren(element("p", { class: "error", role: "alert" }, word("tabFailed")));
    reportError(error);
  }
}

function drawNames() {
  for (const task of tasks) byId(`tab-${task}`).textContent = tabName(task);
  document.title = `${tabName(tasks.find((task) => !byId(task).hidden))} · ${word("title")}`;
}

function open(chosen) {
  for (const task of tasks) {
    const isOpen = task === chosen;
    const tab = byId(`tab-${task}`);
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    byId(task).hidden = !isOpen;
  }
  drawNames();
}
