// The start of the page: its language, its tabs, and what the server offers.

import { startLanguage } from "./language.js";
import { startModels } from "./models.js";
import { startTabs } from "./tabs.js";

startLanguage();
await startTabs();
startModels();
