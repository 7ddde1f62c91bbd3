// The start of the page: its language, its tabs, and what the server offers.

import { byId } from "./elements.js";
import { startKeepsake } from "./keepsake.js";
import { startLanguage } from "./language.js";
import { startModels } from "./models.js";
import { startTabs } from "./tabs.js";

startLanguage();
startKeepsake();
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the tab
  byId("main").focus();
});
startTabs().then(startModels);
byId("fonts").media = "all"; // only now, so that nothing waits for them
