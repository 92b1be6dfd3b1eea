// What each button sends.

import { $ } from "./dom.js";
import { get, json, many, pause, send } from "./http.js";
import { chargesOf, choose, chosenOrder, onOrders, refreshOrders } from "./orders.js";
import { Panel } from "./panel.js";
import { refreshRecords } from "./records.js";
import { language, t } from "./texts.js";

const refresh = () => Promise.all([refreshOrders(), refreshRecords()]);
const good = (run) => run.answers.filter((answer) => answer.ok);

// Create an order: one id for each order that is meant, new only when the last one was made.
const creating = new Panel($("create-panel"), {
  sum: (run) => [t("sumOrders")(run.sent, new Set(good(run).map((answer) => answer.data.order_no)).size), "good"],
  tell: (order) => t("created")(order),
});
let requestId = crypto.randomUUID();
async function create(count) {
  const form = $("create");
  const order = json({ request_id: requestId, item: form.item.value, quantity: Number(form.quantity.value) });
  const run = creating.begin(requestId);
  await many(count, () => creating.ask(run, "/orders", order));
  const [made] = good(run);
  if (made) {
    requestId = crypto.randomUUID();
    choose(made.data.order_no);
  }
  await refresh();
}
$("create").onsubmit = (event) => { event.preventDefault(); create(1); };
$("create").fast.onclick = () => { if ($("create").reportValidity()) create(3); };

// Pay.
const paying = new Panel($("pay-panel"), {
  sum(run) {
    if (run.wait) return [t("waiting")(run.wait), "warn"];
    const charges = chargesOf(run.about);
    return [t("sumPay")(run.sent, charges), charges > 1 ? "bad" : "good"];
  },
  tell: (receipt) => t("receipt")(receipt),
});
const pay = (run, limit) =>
  paying.ask(run, `/orders/${encodeURIComponent(run.about)}/pay`, { ...json({ card: $("card").value }), limit });
const PAY = {
  once: (run) => pay(run),
  fast: (run) => many(3, () => pay(run)),
  storm: (run) => many(50, () => pay(run)),
  async retry(run) {
    await pay(run, 200);
    for (let tries = 0; tries < 5; tries++) {
      const answer = await pay(run);
      if (answer.ok || !answer.after) return;
      run.wait = answer.after;
      paying.show();
      await pause(answer.after * 1000);
      run.wait = null;
    }
  },
};
$("pay").onclick = async ({ target }) => {
  const scene = PAY[target.dataset.scene];
  if (!scene) return;
  await scene(paying.begin(chosenOrder()));
  await refresh();
};
onOrders(() => paying.show());

// The provider's delay.
const showDelay = () => { $("delay-shown").textContent = `${$("delay").value} ms`; };
$("delay").oninput = showDelay;
$("delay").onchange = () => send("/provider", { method: "PUT", ...json({ delay_ms: Number($("delay").value) }) });
get("/provider").then(({ delay_ms }) => { $("delay").value = delay_ms; showDelay(); }).catch(() => {});

// Flash sale: a new sale each time, and a request id for each buyer.
const selling = new Panel($("sale-panel"), {
  sum({ sent, sale }) {
    return [t("sumSale")(sent, sale.sold, sale.available), sale.sold > sale.items ? "bad" : "good"];
  },
  tell: (ticket) => t("ticket")(ticket),
});
$("sale").onsubmit = async (event) => {
  event.preventDefault();
  const items = Number($("sale").items.value), buyers = Number($("sale").buyers.value);
  const path = `/sales/${crypto.randomUUID().slice(0, 8)}`;
  await send(path, { method: "PUT", ...json({ available: items }) });
  const run = selling.begin(path);
  run.sale = { sold: 0, available: items, items };
  await many(buyers, (n) => selling.ask(run, `${path}/buy`, json({ request_id: crypto.randomUUID(), buyer: `${n + 1}` })));
  run.sale = { items, ...await get(path) };
  selling.show();
  await refresh();
};

$("lang").onclick = () => language.toggle();
language.onChange(() => {
  $("lang").textContent = t("other");
  $("lang").lang = language.now === "zh" ? "en" : "zh-Hans";
});
setInterval(() => { if (!document.hidden) refresh(); }, 1000);
language.apply();
refresh();
