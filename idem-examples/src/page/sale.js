// Flash sale: a new sale each time, and a request id for each buyer.

import { $ } from "./dom.js";
import { get, json, many, send } from "./http.js";
import { Panel } from "./panel.js";
import { refresh } from "./refresh.js";
import { t } from "./texts.js";

const panel = new Panel($("sale-panel"), {
  sum({ sent, sale, items }) {
    return [t("sumSale")(sent, sale.sold, sale.available), sale.sold > items ? "bad" : "good"];
  },
  tell: (ticket) => t("ticket")(ticket),
});
const form = $("sale");

form.onsubmit = async (event) => {
  event.preventDefault();
  const items = Number(form.items.value), buyers = Number(form.buyers.value);
  const path = `/sales/${crypto.randomUUID().slice(0, 8)}`;
  await send(path, { method: "PUT", ...json({ available: items }) });
  const run = panel.begin(path);
  Object.assign(run, { items, sale: { sold: 0, available: items } });
  await many(buyers, (n) => panel.ask(run, `${path}/${form.way.value}`, json({ request_id: crypto.randomUUID(), buyer: `${n + 1}` })));
  run.sale = await get(path);
  panel.show();
  await refresh();
};
