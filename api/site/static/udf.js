// A data feed over TradingView's UDF protocol, with the calls that its charting library documents: onReady, searchSymbols,
// resolveSymbol, getBars, subscribeBars, unsubscribeBars, getMarks, getTimescaleMarks, getServerTime. It
// validates every response: one that violates the protocol is an error.
const COLUMNS = ["t", "o", "h", "l", "c"];

export class Datafeed {
  #url;
  #every;
  #pass;
  #configuration = null;
  #subscribed = new Map();

  constructor(url, { every = 5000, pass } = {}) {
    this.#url = url.replace(/\/$/, "");
    this.#every = every;
    this.#pass = pass;
  }

  async onReady() {
    const found = await this.#ask("config");
    if (!Array.isArray(found.supported_resolutions) || !found.supported_resolutions.length) throw new Error("config: no supported_resolutions");
    if (found.supports_search === found.supports_group_request) throw new Error("config: either search or group request");
    this.#configuration = found;
    return found;
  }

  async getServerTime() {
    const seconds = Number(await this.#ask("time"));
    if (!Number.isInteger(seconds)) throw new Error("time: not a whole number");
    return seconds;
  }

  async searchSymbols(query, exchange = "", type = "", limit = 30) {
    const found = await this.#ask("search", { query, exchange, type, limit });
    if (!Array.isArray(found)) throw new Error(found.errmsg || "search: not an array");
    return found;
  }

  async resolveSymbol(symbol) {
    const found = await this.#ask("symbols", { symbol });
    if (found.s === "error") throw new Error(found.errmsg);
    for (const name of ["name", "ticker", "description", "session", "timezone", "minmov", "pricescale"]) {
      if (found[name] === undefined) throw new Error(`symbols: no ${name}`);
    }
    return found;
  }

  // Return bars from `from` to before `to` (Unix seconds), at least `countBack` if available, oldest first.
  async getBars(symbol, resolution, { from, to, countBack }) {
    if (!this.#configuration?.supported_resolutions.includes(resolution)) throw new Error(`no resolution ${resolution}`);
    const found = await this.#ask("history", { symbol: symbol.ticker, resolution, from, to, countback: countBack });
    if (found.s === "no_data") return { bars: [], noData: true, nextTime: found.nextTime };
    if (found.s !== "ok") throw new Error(found.errmsg || "history: neither ok nor no_data");
    const length = found.t.length;
    for (const column of COLUMNS) if (found[column]?.length !== length) throw new Error(`history: column ${column} has another length`);
    const bars = found.t.map((time, at) => ({
      time, open: found.o[at], high: found.h[at], low: found.l[at], close: found.c[at], volume: found.v?.[at] ?? 0,
    }));
    for (let at = 1; at < length; at += 1) if (bars[at].time <= bars[at - 1].time) throw new Error("history: not in order");
    for (const bar of bars) if (bar.high < Math.max(bar.open, bar.close) || bar.low > Math.min(bar.open, bar.close)) throw new Error("history: a bar beyond its bounds");
    return { bars, noData: false };
  }

  async getMarks(symbol, from, to, resolution) {
    if (!this.#configuration?.supports_marks) return [];
    const found = await this.#ask("marks", { symbol: symbol.ticker, from, to, resolution });
    return found.id.map((id, at) => ({ id, time: found.time[at], color: found.color[at], text: found.text[at], label: found.label[at] }));
  }

  async getTimescaleMarks(symbol, from, to, resolution) {
    if (!this.#configuration?.supports_timescale_marks) return [];
    return this.#ask("timescale_marks", { symbol: symbol.ticker, from, to, resolution });
  }

  // Call `onBar` with the newest bar whenever it changes, and with any bars in between.
  subscribeBars(symbol, resolution, onBar, id) {
    this.unsubscribeBars(id);
    const subscription = { symbol, resolution, onBar, last: null, asking: false };
    subscription.timer = setInterval(() => this.#pulse(subscription), this.#every);
    this.#subscribed.set(id, subscription);
  }

  unsubscribeBars(id) {
    clearInterval(this.#subscribed.get(id)?.timer);
    this.#subscribed.delete(id);
  }

  // Poll now: something has happened.
  pulse() {
    for (const subscription of this.#subscribed.values()) this.#pulse(subscription);
  }

  async #pulse(subscription) {
    if (subscription.asking || document.hidden) return;
    subscription.asking = true;
    try {
      const to = Math.floor(Date.now() / 1000) + 60;
      const { bars } = await this.getBars(subscription.symbol, subscription.resolution, { from: to - 60, to, countBack: 3 });
      for (const bar of bars) {
        const last = subscription.last;
        if (last && (bar.time < last.time || JSON.stringify(bar) === JSON.stringify(last))) continue;
        subscription.last = bar;
        subscription.onBar(bar);
      }
    } catch { /* retried on the next interval */ } finally { subscription.asking = false; }
  }

  async #ask(route, params = {}) {
    const query = new URLSearchParams(Object.entries({ ...params, pass: this.#pass }).filter(([, value]) => value !== undefined));
    const answer = await fetch(`${this.#url}/${route}?${query}`);
    if (!answer.ok) throw new Error(`${route}: ${answer.status}`);
    return answer.json();
  }
}
