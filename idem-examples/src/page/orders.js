// The list of orders, and which of them is chosen.

import { $, cell, element, fill, money, tag } from "./dom.js";
import { get } from "./http.js";
import { language, t } from "./texts.js";

let orders = [];
let chosen = null;
const listeners = [];

export const chosenOrder = () => chosen;
export const chargesOf = (orderNo) => orders.find((order) => order.order_no === orderNo)?.charges ?? 0;
export const onOrders = (listener) => listeners.push(listener);

export function choose(orderNo) {
  chosen = orderNo;
  show();
}

export async function refreshOrders() {
  const fresh = await get("/orders").catch(() => orders);
  if (JSON.stringify(fresh) === JSON.stringify(orders) && chosen) return;
  orders = fresh;
  if (!orders.some((order) => order.order_no === chosen)) chosen = orders[0]?.order_no ?? null;
  show();
}

function show() {
  $("no-orders").hidden = orders.length > 0;
  $("orders-table").hidden = orders.length === 0;
  for (const place of document.querySelectorAll(".chosen")) place.textContent = chosen ?? "";
  for (const button of document.querySelectorAll("[data-scene]")) button.disabled = !chosen;
  // The table is made anew under the finger of somebody who is choosing by keyboard.
  const focused = document.activeElement?.name === "order" ? document.activeElement.value : null;
  fill($("orders"), orders.map(row));
  if (focused) document.querySelector(`input[value="${CSS.escape(focused)}"]`)?.focus();
  for (const listener of listeners) listener();
}

function row(order) {
  const radio = Object.assign(element("input"), { type: "radio", name: "order", value: order.order_no, checked: order.order_no === chosen });
  radio.setAttribute("aria-label", order.order_no);
  radio.onchange = () => choose(order.order_no);
  return [
    cell(radio), cell(order.order_no, "key"), cell(`${order.quantity} × ${t(order.item).split(/[, ]/)[0]}`),
    cell(money(order.amount_cents), "num"), cell(tag(t(order.status), order.status === "paid" ? "good" : "soft")),
    cell(order.charges, `num ${order.charges > 1 ? "bad" : ""}`),
  ];
}

language.onChange(show);
