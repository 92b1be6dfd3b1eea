// What was sent about one thing, and the answers.

import { cell, element, fill } from "./dom.js";
import { send } from "./http.js";
import { language, t } from "./texts.js";

/** More than a browser sends to one host at a time. */
const AT_ONCE = 6;

/** In milliseconds. */
export const AT_A_GLANCE = 1000;

export const good = (run) => run.answers.filter((answer) => answer.ok);

export class Panel {
  /** `sum(run)` gives `[text, tone]` of the line above; `tell(data)` the text of a good answer. */
  constructor(root, { sum, tell }) {
    Object.assign(this, { sum, tell, run: null });
    this.line = element("p", "sum");
    this.line.setAttribute("role", "status");
    this.body = element("tbody");
    this.head = element("tr");
    this.table = element("table", "", element("thead", "", this.head), this.body);
    this.note = element("p", "note");
    root.append(this.line, element("div", "scroll", this.table), this.note);
    language.onChange(() => this.show());
  }

  /** Presses that come quicker than anybody reads the answers are one run. */
  begin(about) {
    const { run } = this;
    const goesOn = run?.about === about && (run.open || performance.now() - run.answered < AT_A_GLANCE);
    if (!goesOn) this.run = { about, open: 0, sent: 0, answers: [], answered: 0 };
    return this.run;
  }

  async ask(run, path, request) {
    const number = ++run.sent;
    run.open++;
    const answer = await send(path, request);
    run.open--;
    run.answered = performance.now();
    run.answers.push({ number, ...answer });
    this.show();
    return answer;
  }

  show() {
    const { run } = this;
    this.table.hidden = !run?.answers.length;
    this.note.hidden = !(run?.sent > AT_ONCE);
    if (!run) return;
    const [text, tone] = this.sum(run);
    // Said again only when it has changed: screen readers read it out.
    if (this.line.textContent !== text) this.line.textContent = text;
    this.line.className = `sum ${tone}`;
    this.note.textContent = t("sixNote");
    this.head.replaceChildren(...["#", t("took"), "HTTP", t("outcome"), t("answer")].map((name) => element("th", "", name)));
    fill(this.body, run.answers.map((answer) => this.row(answer)));
  }

  row(answer) {
    const refusal = ({ code, message }) => `${code}: ${message}`;
    const text = answer.note ? t(answer.note) : answer.ok ? this.tell(answer.data) : refusal(answer.data);
    return [
      cell(answer.number, "num soft"), cell(`${answer.took} ms`, "num"),
      cell(String(answer.status ?? "—"), answer.ok ? "good" : "warn"),
      cell(answer.outcome ? t(answer.outcome) : "—"), cell(text, "grow"),
    ];
  }
}
