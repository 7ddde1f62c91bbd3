// The start of the page: its language, its tabs, and what the server offers.

import { byId } from "./elements.js";
import { startPictures } from "./keep.js";
import { startLanguage } from "./language.js";
import { startModels } from "./models.js";
import { startTabs } from "./tabs.js";

startLanguage();
startPictures();
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the tab
  byId("main").focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form?.requestSubmit();
});
startTabs().then(startModels);
byId("fonts").href = byId("fonts").dataset.href; // only now, so that nothing shares the line with them
