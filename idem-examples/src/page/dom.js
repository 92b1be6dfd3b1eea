// Small things of the document.

export const $ = (id) => document.getElementById(id);

export function element(name, classes = "", ...children) {
  const made = document.createElement(name);
  made.className = classes;
  made.append(...children);
  return made;
}

export const cell = (content, classes) => element("td", classes, content);

export const tag = (text, tone) => element("span", `tag ${tone}`, text);

export function fill(body, rows) {
  body.replaceChildren(...rows.map((cells) => element("tr", "", ...cells)));
}

export const money = (cents) => (cents / 100).toFixed(2);

export function span(ms) {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  return d ? `${d} d ${h % 24} h` : h ? `${h} h ${m % 60} min` : m ? `${m} min ${s % 60} s` : `${s} s`;
}
