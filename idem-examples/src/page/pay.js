// Pay the chosen order.

import { $ } from "./dom.js";
import { get, json, many, pause, send } from "./http.js";
import { chargesOf, chosenOrder, onOrders } from "./orders.js";
import { Panel } from "./panel.js";
import { refresh } from "./refresh.js";
import { t } from "./texts.js";

const panel = new Panel($("pay-panel"), {
  sum(run) {
    if (run.wait) return [t("waiting")(run.wait), "warn"];
    const charges = chargesOf(run.about);
    return [t("sumPay")(run.sent, charges), charges > 1 ? "bad" : "good"];
  },
  tell: (receipt) => t("receipt")(receipt),
});

const pay = (run, limit) =>
  panel.ask(run, `/orders/${encodeURIComponent(run.about)}/pay`, { ...json({ card: $("card").value }), limit });

const SCENES = {
  once: (run) => pay(run),
  fast: (run) => many(3, () => pay(run)),
  storm: (run) => many(50, () => pay(run)),
  async retry(run) {
    await pay(run, 200);
    for (let tries = 0; tries < 5; tries++) {
      const answer = await pay(run);
      if (answer.ok || !answer.after) return;
      run.wait = answer.after;
      panel.show();
      await pause(answer.after * 1000);
      run.wait = null;
    }
  },
};

$("pay").onclick = async ({ target }) => {
  const scene = SCENES[target.dataset.scene];
  if (!scene) return;
  await scene(panel.begin(chosenOrder()));
  await refresh();
};
onOrders(() => panel.show());

const showDelay = () => { $("delay-shown").textContent = `${$("delay").value} ms`; };
$("delay").oninput = showDelay;
$("delay").onchange = () => send("/provider", { method: "PUT", ...json({ delay_ms: Number($("delay").value) }) });
get("/provider").then(({ delay_ms }) => { $("delay").value = delay_ms; showDelay(); }).catch(() => {});
