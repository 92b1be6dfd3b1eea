// Requests, and what became of each.

export async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(path);
  return response.json();
}

export const json = (body) => ({ body: JSON.stringify(body), headers: { "content-type": "application/json" } });

/** Never throws: an answer that did not come has a `note`. */
export async function send(path, { method = "POST", limit, ...request } = {}) {
  const began = performance.now();
  const took = () => Math.round(performance.now() - began);
  try {
    const signal = limit ? AbortSignal.timeout(limit) : undefined;
    const response = await fetch(path, { method, signal, ...request });
    const text = await response.text();
    return {
      ok: response.ok, status: response.status, outcome: response.headers.get("idempotency-outcome"),
      after: Number(response.headers.get("retry-after")), data: read(text), took: took(),
    };
  } catch (error) {
    return { ok: false, status: null, note: error.name === "TimeoutError" ? "gaveUp" : "unanswered", took: took() };
  }
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const many = (count, one) => Promise.all(Array.from({ length: count }, (_, index) => one(index)));
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
