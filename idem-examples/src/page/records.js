// The live list of records.

import { $, cell, fill, span, tag } from "./dom.js";
import { get } from "./http.js";
import { language, t } from "./texts.js";

const TONES = { success: "good", processing: "warn", failed: "bad", abandoned: "bad" };

export async function refreshRecords() {
  const records = await get("/records").catch(() => null);
  $("no-records").textContent = t(records ? "noRecords" : "unread");
  $("no-records").hidden = records?.length > 0;
  $("records-table").hidden = !records?.length;
  fill($("records"), (records ?? []).map(row));
}

function row(record) {
  return [
    cell(record.key, "key grow"), cell(tag(t(record.status), TONES[record.status] ?? "soft")), cell(record.attempt, "num"),
    cell(span(record.age_ms), "num"), cell(record.lease_left_ms === null ? "—" : span(record.lease_left_ms), "num"),
    cell(span(record.expires_in_ms), "num"),
  ];
}

language.onChange(refreshRecords);
