// The start of the page: its language, its tabs, and what the server offers.

import { startConversation } from "./conversation.js";
import { startCouplet } from "./couplet.js";
import { startLanguage } from "./language.js";
import { startModels } from "./models.js";
import { startTabs } from "./tabs.js";

startLanguage();
startTabs(["couplet", "conversation"]);
startCouplet();
startConversation();
startModels();
