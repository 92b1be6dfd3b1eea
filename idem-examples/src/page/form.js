// The form with a one-time token, and who is logged in.

import { $ } from "./dom.js";
import { get, json, many, send } from "./http.js";
import { choose } from "./orders.js";
import { Panel, good } from "./panel.js";
import { refresh } from "./refresh.js";
import { t } from "./texts.js";

const panel = new Panel($("form-panel"), {
  sum: (run) => [t("sumOrders")(run.sent, new Set(good(run).map((answer) => answer.data.order_no)).size), "good"],
  tell: (order) => t("created")(order),
});
const form = $("form");
let token = null;

/** The token stays when somebody else logs in: it is worth nothing to them. */
const logIn = (name) => send("/session", json({ name }));

async function open() {
  const answer = await send("/form");
  if (!answer.ok) return;
  token = answer.data.token;
  // A piece of it, for the eye; the whole is nobody's business.
  $("token").textContent = `${token.slice(0, 6)}…`;
}

async function submit(count) {
  const filled = json({ token, item: form.item.value, quantity: Number(form.quantity.value) });
  const run = panel.begin(token);
  await many(count, () => panel.ask(run, "/form/submit", filled));
  const [made] = good(run);
  if (made) choose(made.data.order_no);
  await refresh();
}

form.onsubmit = (event) => { event.preventDefault(); submit(1); };
form.fast.onclick = () => submit(2);
form.anew.onclick = open;
$("user").onchange = () => logIn($("user").value);

async function start() {
  const known = await get("/session").catch(() => null);
  if (known) $("user").value = known.name;
  if (!known || !$("user").value) {
    $("user").value = "alice";
    await logIn("alice");
  }
  await open();
}
start();
