// The payment provider's callbacks, sent from here as it would send them.

import { $ } from "./dom.js";
import { get, json, many, send } from "./http.js";
import { chosenOrder } from "./orders.js";
import { Panel } from "./panel.js";
import { refresh } from "./refresh.js";
import { t } from "./texts.js";

const panel = new Panel($("callback-panel"), {
  sum: ({ sent, noted, kind }) => [t(kind)(sent, noted), noted > 1 ? "bad" : "good"],
  tell: (text) => text,
});

async function notify(kind, count, change = (signed) => signed) {
  const order_no = chosenOrder();
  const signed = await send("/provider/notifications", json({ order_no, kind }));
  if (!signed.ok) return;
  const { body, signature } = change(signed.data);
  const run = panel.begin(`${body} ${signature}`);
  Object.assign(run, { noted: 0, kind: kind === "paid" ? "sumPaid" : "sumRefunded" });
  const request = { body, headers: { "x-provider-signature": signature } };
  await many(count, () => panel.ask(run, "/callbacks/payment", request));
  const payments = await get(`/orders/${encodeURIComponent(order_no)}/payments`);
  run.noted = payments.filter((payment) => payment.kind === kind).length;
  panel.show();
  await refresh();
}

/** Somebody who would like to pay less, and has seen a signature. */
const forged = ({ body, signature }) => ({ body: body.replace(/"amount_cents":\d+/, '"amount_cents":1'), signature });

const SCENES = {
  five: () => notify("paid", 5),
  refund: () => notify("refunded", 2),
  forged: () => notify("paid", 1, forged),
};
$("callback").onclick = ({ target }) => SCENES[target.dataset.scene]?.();
