// Create an order: one id for each order that is meant. It is new only when the last one was made, or
// was made with other words, and the answer could be read: the second half of a double click means
// the same order.

import { $ } from "./dom.js";
import { json, many } from "./http.js";
import { choose } from "./orders.js";
import { AT_A_GLANCE, Panel, good } from "./panel.js";
import { refresh } from "./refresh.js";
import { t } from "./texts.js";

const panel = new Panel($("create-panel"), {
  sum: (run) => [t("sumOrders")(run.sent, new Set(good(run).map((answer) => answer.data.order_no)).size), "good"],
  tell: (order) => t("created")(order),
});
const form = $("create");
let requestId = crypto.randomUUID();

async function create(count) {
  const order = json({ request_id: requestId, item: form.item.value, quantity: Number(form.quantity.value) });
  const run = panel.begin(requestId), meant = requestId;
  const answers = await many(count, () => panel.ask(run, "/orders", order));
  const [made] = good(run);
  // Under this id there was another order, whose answer was lost: it would be refused for ever.
  const isTaken = answers.some(({ status }) => status === 422);
  if (made || isTaken) setTimeout(() => { if (requestId === meant) requestId = crypto.randomUUID(); }, AT_A_GLANCE);
  if (made) choose(made.data.order_no);
  await refresh();
}

form.onsubmit = (event) => { event.preventDefault(); create(1); };
form.fast.onclick = () => { if (form.reportValidity()) create(3); };
