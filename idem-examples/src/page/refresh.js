// What is live.

import { refreshOrders } from "./orders.js";
import { refreshRecords } from "./records.js";

export const refresh = () => Promise.all([refreshOrders(), refreshRecords()]);
