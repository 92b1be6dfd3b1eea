// The payment provider's callbacks, sent from here as it would send them.

import { $ } from "./dom.js";
import { get, json, many, send } from "./http.js";
import { chosenOrder } from "./orders.js";
import { Panel } from "./panel.js";
import { refresh } from "./refresh.js";
import { t } from "./texts.js";

const panel = new Panel($("callback-panel"), {
  sum({ uncharged, sent, noted, kind }) {
    if (uncharged) return [t("uncharged"), "warn"];
    return [t(kind)(sent, noted), noted > 1 ? "bad" : "good"];
  },
  tell: (text) => text,
});

/** What the provider would send, to the letter. Of a payment, it is paid before, if it was not yet. */
const real = (order_no, kind) => send("/provider/notifications", json({ order_no, kind }));

/** What somebody sends who has not paid, and can not sign. */
function forged(order_no, kind) {
  const body = JSON.stringify({ charge_no: 1, kind, order_no, amount_cents: 1 });
  return { ok: true, data: { body, signature: "0".repeat(64) } };
}

async function notify(kind, count, write = real) {
  const order_no = chosenOrder();
  const note = await write(order_no, kind);
  if (note.data?.code === "no_charge") {
    panel.begin(order_no).uncharged = true;
    panel.show();
  }
  if (!note.ok) return;
  const { body, signature } = note.data;
  const run = panel.begin(`${body} ${signature}`);
  Object.assign(run, { noted: 0, kind: kind === "paid" ? "sumPaid" : "sumRefunded" });
  const request = { body, headers: { "x-provider-signature": signature } };
  await many(count, () => panel.ask(run, "/callbacks/payment", request));
  const payments = await get(`/orders/${encodeURIComponent(order_no)}/payments`);
  run.noted = payments.filter((payment) => payment.kind === kind).length;
  panel.show();
  await refresh();
}

const SCENES = {
  five: () => notify("paid", 5),
  refund: () => notify("refunded", 2),
  forged: () => notify("paid", 1, forged),
};
$("callback").onclick = ({ target }) => SCENES[target.dataset.scene]?.();
