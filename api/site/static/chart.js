// Price and volume chart of a market: bars from the data feed, drawn by lightweight-charts.
import { Datafeed } from "./udf.js";
import * as words from "./words.js";

const WIDTH = { "1": 60, "5": 300, "15": 900, "60": 3600, "240": 14400, "1D": 86400 };
const BARS_PER_REQUEST = 400;
const MIN_BARS = 40; // minimum bars for a useful chart; with fewer, a finer resolution is used

// The theme's current colours, resolved for use on a canvas.
function colours(element) {
  const probe = document.createElement("span");
  probe.hidden = true;
  element.append(probe);
  const found = {};
  for (const name of ["text", "muted", "line", "up", "down", "up-soft", "down-soft", "accent"]) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

// The axis extends beyond 0 and 1 to leave room for volumes; prices do not, so it has no labels there.
const onAxis = (price) => (price < -1e-9 || price > 1 + 1e-9 ? "" : words.cents(Math.abs(price)));

export class Chart {
  #element;
  #feed;
  #symbol;
  #chart;
  #price = null;
  #volume = null;
  #bars = [];
  #resolution = "1";
  #kind = "candles";
  #whole = false;
  #loading = false;

  constructor(element, { url = "/udf" } = {}) {
    this.#element = element;
    this.#feed = new Datafeed(url, { pass: document.body.dataset.pass });
  }

  async start() {
    const state = (name, said = "") => { this.#element.dataset.state = name; this.#element.dataset.said = said; };
    if (!globalThis.LightweightCharts) return state("missing", "The chart library is not installed");
    state("loading", "Loading…");
    try {
      await this.#feed.onReady();
      const symbol = this.#element.dataset.symbol; // the page's pass is valid for this spelling only
      this.#symbol = { ...(await this.#feed.resolveSymbol(symbol)), ticker: symbol };
      this.#chart = LightweightCharts.createChart(this.#element, {
        autoSize: true,
        layout: { background: { color: "transparent" }, attributionLogo: false, fontFamily: "system-ui, sans-serif" },
        localization: { priceFormatter: onAxis, locale: "en-GB" },
        timeScale: { timeVisible: true, secondsVisible: false, rightOffset: 4 },
        rightPriceScale: { scaleMargins: { top: 0.08, bottom: 0.28 } },
        crosshair: { mode: LightweightCharts.CrosshairMode.Normal },
      });
      this.#chart.timeScale().subscribeVisibleLogicalRangeChange((range) => { if (range && range.from < 10) this.#older(); });
      document.documentElement.addEventListener("themechange", () => this.#paint());
      await this.show(this.#element.dataset.resolution || await this.#fitting());
    } catch (error) { state("failed", `The chart cannot be drawn: ${error.message}`); }
    return undefined;
  }

  get resolution() { return this.#resolution; }

  pulse() { this.#feed.pulse(); }

  // Return the widest resolution with enough bars.
  async #fitting() {
    for (const resolution of ["60", "5"]) if ((await this.#before(resolution, this.#end())).length >= MIN_BARS) return resolution;
    return "1";
  }

  async show(resolution, kind = this.#kind) {
    this.#feed.unsubscribeBars("chart");
    this.#resolution = resolution;
    this.#kind = kind;
    this.#whole = false;
    this.#bars = await this.#before(resolution, this.#end());
    this.#draw();
    this.#chart.timeScale().setVisibleLogicalRange({ from: Math.max(-0.5, this.#bars.length - 120), to: this.#bars.length + 3 });
    this.#feed.subscribeBars(this.#symbol, resolution, (bar) => this.#update(bar), "chart");
    await this.#mark();
    this.#element.dataset.state = this.#bars.length ? "drawn" : "empty";
    this.#element.dataset.said = "No trades yet";
    this.#element.dataset.bars = this.#bars.length;
  }

  #end() { return Math.floor(Date.now() / 1000) + 60; }

  async #before(resolution, to) {
    const { bars } = await this.#feed.getBars(this.#symbol, resolution, { from: to - BARS_PER_REQUEST * WIDTH[resolution], to, countBack: BARS_PER_REQUEST });
    return bars;
  }

  async #older() {
    if (this.#loading || this.#whole || !this.#bars.length) return;
    this.#loading = true;
    try {
      const first = this.#bars[0].time;
      const more = (await this.#before(this.#resolution, first)).filter((bar) => bar.time < first);
      this.#whole = !more.length;
      if (more.length) { this.#bars = [...more, ...this.#bars]; this.#fill(); }
    } catch { /* requested again on the next scroll */ } finally { this.#loading = false; }
  }

  #draw() {
    for (const series of [this.#price, this.#volume]) if (series) this.#chart.removeSeries(series);
    const { CandlestickSeries, AreaSeries, HistogramSeries, createSeriesMarkers } = LightweightCharts;
    const format = { type: "custom", minMove: 0.001, formatter: onAxis };
    this.#price = this.#chart.addSeries(this.#kind === "candles" ? CandlestickSeries : AreaSeries, { priceFormat: format });
    this.#volume = this.#chart.addSeries(HistogramSeries, { priceScaleId: "volume", priceFormat: { type: "volume" }, lastValueVisible: false, priceLineVisible: false });
    this.#volume.priceScale().applyOptions({ scaleMargins: { top: 0.8, bottom: 0 } });
    this.markers = createSeriesMarkers(this.#price, []);
    this.#paint();
  }

  #paint() {
    if (!this.#price) return; // nothing drawn yet; colours are resolved when it is
    const found = colours(this.#element);
    this.#chart.applyOptions({
      layout: { textColor: found.muted },
      grid: { vertLines: { color: found.line }, horzLines: { color: found.line } },
      timeScale: { borderColor: found.line },
      rightPriceScale: { borderColor: found.line },
    });
    if (this.#kind === "candles") {
      this.#price.applyOptions({ upColor: found.up, downColor: found.down, wickUpColor: found.up, wickDownColor: found.down, borderVisible: false });
    } else {
      this.#price.applyOptions({ lineColor: found.accent, topColor: found["up-soft"], bottomColor: "transparent", lineWidth: 2 });
    }
    this.colours = found;
    this.#fill();
  }

  #point(bar) { return this.#kind === "candles" ? bar : { time: bar.time, value: bar.close }; }

  #column(bar) { return { time: bar.time, value: bar.volume, color: bar.close >= bar.open ? this.colours["up-soft"] : this.colours["down-soft"] }; }

  #fill() {
    this.#price.setData(this.#bars.map((bar) => this.#point(bar)));
    this.#volume.setData(this.#bars.map((bar) => this.#column(bar)));
  }

  #update(bar) {
    const last = this.#bars.at(-1);
    if (last && bar.time < last.time) return;
    if (last?.time === bar.time) this.#bars[this.#bars.length - 1] = bar; else this.#bars.push(bar);
    this.#price.update(this.#point(bar));
    this.#volume.update(this.#column(bar));
    this.#element.dataset.bars = this.#bars.length;
    this.#element.dataset.state = "drawn";
  }

  // Show status changes and large trades, each on the bar of its time.
  async #mark() {
    if (!this.#bars.length) return;
    const marks = await this.#feed.getMarks(this.#symbol, this.#bars[0].time, this.#end(), this.#resolution);
    const times = this.#bars.map((bar) => bar.time);
    const placed = marks.map((mark) => {
      const time = times.findLast((each) => each <= mark.time);
      return time === undefined ? null : { time, position: "aboveBar", shape: "circle", color: this.colours.accent, text: mark.label, id: mark.id };
    });
    this.markers.setMarkers(placed.filter(Boolean).sort((a, b) => a.time - b.time));
  }
}
