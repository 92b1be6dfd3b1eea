// The page begins here; each scene has a file of its own.

import { $ } from "./dom.js";
import { refresh } from "./refresh.js";
import { language, t } from "./texts.js";
import "./create.js";
import "./pay.js";
import "./callback.js";
import "./sale.js";
import "./form.js";

$("lang").onclick = () => language.toggle();
language.onChange(() => {
  $("lang").textContent = t("other");
  $("lang").lang = language.now === "zh" ? "en" : "zh-Hans";
});
setInterval(() => { if (!document.hidden) refresh(); }, 1000);
language.apply();
refresh();
