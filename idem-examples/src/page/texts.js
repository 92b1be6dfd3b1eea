// What the page says, twice.

const s = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;

const TEXTS = {
  en: {
    title: "Order service", lead: "One business request runs once. Press as fast as you can.", other: "中文", user: "Logged in as",
    order: "New order", orderScheme: "Unique constraint: the browser makes one id for each order that it means.",
    item: "Item", tea: "Tea, 4.20", cup: "Cup, 12.50", pot: "Pot, 39.00", quantity: "Quantity",
    create: "Create order", create3: "Create ×3 fast", noOrders: "No orders yet: create one, then pay it.",
    number: "Order", what: "Item", amount: "Amount", status: "Status", charges: "Charges", unpaid: "unpaid", paid: "paid",
    payment: "Pay", payScheme: "State machine, and a record around the charge: press three times, be charged once.",
    pay: "Pay", pay3: "Pay ×3 fast", retry: "Time-out, then retry", storm: "Storm of 50",
    card: "Card", cardGood: "Good card", cardDeclined: "Declined", cardLost: "Charged, answer lost", delay: "Provider takes",
    form: "Order form", formScheme: "One-time token: it belongs to whoever is logged in, and a form that failed gets it back. Try a quantity of 0.",
    submit: "Submit", submit2: "Submit ×2 fast", anew: "New form", token: "Token of this form:", issued: "issued",
    callback: "Payment callback", callbackScheme: "Signature first; then payment, status and record in one transaction.",
    notify5: "Notify ×5", forge: "Forged notification", refund2: "Refund notification ×2", refunded: "refunded", shipped: "shipped",
    sale: "Flash sale", saleScheme: "Conditional update: nobody waits for a lock, and no more is sold than there is.",
    items: "Items", buyers: "Buyers", open: "Let them in", way: "Counted down by", byUpdate: "Conditional update", byLock: "A lock, for comparison: slower",
    took: "Took", outcome: "How", answer: "Answer", gaveUp: "client gave up after 200 ms", unanswered: "no answer",
    records: "Records, live", noRecords: "No records yet.", unread: "The records can not be read now.", key: "Key", attempt: "Attempt", age: "Age", lease: "Lease left", expires: "Expires in",
    processing: "processing", abandoned: "abandoned", success: "success", failed: "failed",
    executed: "executed", replayed: "replayed", waited: "waited, then replayed", recovered: "recovered", refused: "refused",
    waiting: (seconds) => `asked to come back in ${seconds} s…`, receipt: (r) => `receipt: charge ${r.charge_no}`, created: (r) => `order ${r.order_no}`,
    ticket: (r) => `bought by ${r.buyer}`,
    sumPay: (sent, charges) => `${s(sent, "request")} → ${s(charges, "charge")}`,
    sumOrders: (sent, made) => `${s(sent, "request")} → ${s(made, "order")}`,
    sumPaid: (sent, noted) => `${s(sent, "notification")} → ${s(noted, "payment")}`,
    sumRefunded: (sent, noted) => `${s(sent, "notification")} → ${s(noted, "refund")}`,
    uncharged: "no charge yet: nothing to give back",
    sumSale: (sent, sold, left) => `${s(sent, "buyer")} → ${sold} sold, ${left} left`,
    sixNote: "A browser sends at most six requests to one host at a time; the curl lines in the README send all at once.",
  },
  zh: {
    title: "订单服务", lead: "同一个业务请求只执行一次。尽管连点。", other: "English", user: "登录用户",
    order: "新订单", orderScheme: "唯一约束：浏览器为每个想下的订单生成一个请求号。",
    item: "商品", tea: "茶 4.20", cup: "杯子 12.50", pot: "茶壶 39.00", quantity: "数量",
    create: "下单", create3: "连点三次下单", noOrders: "还没有订单：先下单，再支付。",
    number: "订单号", what: "商品", amount: "金额", status: "状态", charges: "扣款次数", unpaid: "未支付", paid: "已支付",
    payment: "支付", payScheme: "状态机加幂等记录：连点三次，只扣一次款。",
    pay: "支付", pay3: "连点三次", retry: "超时后重试", storm: "50 个并发请求",
    card: "银行卡", cardGood: "正常", cardDeclined: "拒付", cardLost: "已扣款，应答丢失", delay: "支付渠道耗时",
    form: "订单表单", formScheme: "一次性令牌：只属于登录的用户；提交失败会退还令牌。数量填 0 试试。",
    submit: "提交", submit2: "连点两次提交", anew: "新表单", token: "本表单的令牌：", issued: "已签发",
    callback: "支付回调", callbackScheme: "先验签；支付、状态与幂等记录在同一个事务里。",
    notify5: "通知五次", forge: "伪造的通知", refund2: "退款通知两次", refunded: "已退款", shipped: "已发货",
    sale: "秒杀", saleScheme: "条件更新：不用排队等锁，也不会超卖。",
    items: "库存", buyers: "买家", open: "开抢", way: "扣减方式", byUpdate: "条件更新", byLock: "加锁（对比用，更慢）",
    took: "耗时", outcome: "方式", answer: "应答", gaveUp: "客户端 200 毫秒后放弃", unanswered: "没有应答",
    records: "幂等记录（实时）", noRecords: "还没有记录。", unread: "暂时读不到记录。", key: "键", attempt: "第几次", age: "已过", lease: "租约剩余", expires: "过期还有",
    processing: "处理中", abandoned: "已中断", success: "成功", failed: "失败",
    executed: "已执行", replayed: "返回已有结果", waited: "等待后返回已有结果", recovered: "查询后恢复", refused: "拒绝",
    waiting: (seconds) => `请在 ${seconds} 秒后再试…`, receipt: (r) => `收据：扣款号 ${r.charge_no}`, created: (r) => `订单 ${r.order_no}`,
    ticket: (r) => `买家 ${r.buyer} 抢到`,
    sumPay: (sent, charges) => `${sent} 个请求 → ${charges} 次扣款`,
    sumOrders: (sent, made) => `${sent} 个请求 → ${made} 个订单`,
    sumPaid: (sent, noted) => `${sent} 次通知 → ${noted} 笔支付`,
    sumRefunded: (sent, noted) => `${sent} 次通知 → ${noted} 笔退款`,
    uncharged: "还没有扣款，无款可退",
    sumSale: (sent, sold, left) => `${sent} 位买家 → 售出 ${sold} 件，剩余 ${left} 件`,
    sixNote: "浏览器对同一主机最多同时发送六个请求；README 里的 curl 命令会同时发送全部请求。",
  },
};

const listeners = [];

export const language = {
  now: localStorage.getItem("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"),
  onChange(listener) {
    listeners.push(listener);
  },
  toggle() {
    this.now = this.now === "zh" ? "en" : "zh";
    localStorage.setItem("language", this.now);
    this.apply();
  },
  apply() {
    document.documentElement.lang = this.now === "zh" ? "zh-Hans" : "en";
    for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
    for (const listener of listeners) listener();
  },
};

export const t = (name) => TEXTS[language.now][name] ?? name;
