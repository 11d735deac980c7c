// A market's page: the chart and all live parts.
import { Chart } from "./chart.js";
import { depth } from "./depth.js";
import { follow } from "./live.js";
import { show } from "./site.js";
import * as words from "./words.js";

const page = document.querySelector("[data-market-page]");
const market = page.dataset.marketPage;
const outcome = Number(page.dataset.outcome);
const MAX_LEVELS = 15;
const MAX_TRADES = 30;

function row(cells) {
  const line = document.createElement("tr");
  for (const [text, kind = ""] of cells) {
    const cell = document.createElement("td");
    cell.textContent = text;
    cell.className = kind;
    line.append(cell);
  }
  return line;
}

function book(found) {
  if (found.outcome !== outcome) return;
  const none = !found.bids.length && !found.asks.length;
  for (const side of ["bids", "asks"]) {
    let total = 0;
    const rows = found[side].slice(0, MAX_LEVELS).map((level) => {
      total += level.size;
      return row([[words.cents(level.price), side === "bids" ? "up num" : "down num"], [words.number(level.size), "r"], [words.number(total), "r muted optional"]]);
    });
    document.getElementById(side).replaceChildren(...rows);
  }
  document.getElementById("no-book").hidden = !none;
  depth(document.getElementById("depth"), found);
}

function trade(found) {
  chart.pulse();
  if (found.outcome !== outcome) return;
  const list = document.getElementById("trades");
  const line = row([
    [words.clock(found.ts), "num"], [found.side === "BUY" ? "Buy" : "Sell", found.side === "BUY" ? "up" : "down"],
    [words.cents(found.price), "r"], [words.number(found.size, 2), "r"], [words.usd(found.value_usd), "r"],
  ]);
  line.classList.add(found.side === "BUY" ? "rose" : "fell");
  list.prepend(line);
  while (list.children.length > MAX_TRADES) list.lastElementChild.remove();
  document.getElementById("no-trades").hidden = true;
}

function signal(found) {
  const list = document.getElementById("signals");
  list.prepend(row([[words.clock(found.ts), "num"], [found.type.replaceAll("_", " ")], [found.direction ?? "", found.direction ?? ""], [words.number(found.score, 2), "r"]]));
  document.getElementById("no-signals").hidden = true;
}

const chart = new Chart(document.getElementById("chart"));
const started = chart.start();

const pressed = (name, value) => {
  for (const button of document.querySelectorAll(`button[data-${name}]`)) button.setAttribute("aria-pressed", String(button.dataset[name] === value));
};
started.then(() => pressed("resolution", chart.resolution));
for (const button of document.querySelectorAll("button[data-resolution]")) {
  button.addEventListener("click", async () => { pressed("resolution", button.dataset.resolution); await chart.show(button.dataset.resolution); });
}
for (const button of document.querySelectorAll("button[data-kind]")) {
  button.addEventListener("click", async () => { pressed("kind", button.dataset.kind); await chart.show(chart.resolution, button.dataset.kind); });
}

const shown = [...document.querySelectorAll("[data-live]")];
const drawn = document.getElementById("book-data");
if (drawn) depth(document.getElementById("depth"), JSON.parse(drawn.textContent));
follow({ markets: [market], types: ["price", "trade", "signal", "market", "book"], outcome }, {
  price: (price) => {
    const asOf = document.querySelector("#as-of time");
    if (asOf && price.outcome === outcome) asOf.dateTime = new Date(price.ts).toISOString();
    for (const element of shown) if (element.dataset.market === price.market_id && Number(element.dataset.outcome) === price.outcome) show(element, price);
  },
  trade, signal, book,
  market: () => location.reload(),
});
