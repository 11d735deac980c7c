// Shared by all pages: live prices, relative times, sections that refresh themselves, copy buttons.
import * as words from "./words.js";
import { follow } from "./live.js";

const NULLABLE = new Set(["bid", "ask", "spread"]); // a dash is shown while there is none
const FIELDS = { mid: "cents", bid: "cents", ask: "cents", last: "cents", chance: "chance", spread: "cents", volume_24h_usd: "usd" };

function show(element, price) {
  const field = element.dataset.live;
  const value = field === "chance" ? price.mid ?? price.last : price[field];
  if (value == null && !NULLABLE.has(field)) return;
  const text = words[FIELDS[field]](value);
  if (text === element.textContent) return;
  const before = Number(element.dataset.value);
  element.textContent = text;
  if (value == null) { delete element.dataset.value; return; }
  element.dataset.value = value;
  if (!Number.isNaN(before) && before !== value) {
    element.classList.remove("rose", "fell");
    void element.offsetWidth; // restart the animation
    element.classList.add(value > before ? "rose" : "fell");
  }
}

function prices() {
  const shown = new Map();
  for (const element of document.querySelectorAll("[data-live]")) {
    const key = `${element.dataset.market}:${element.dataset.outcome || 0}`;
    shown.set(key, [...(shown.get(key) || []), element]);
  }
  const page = document.querySelector("[data-market-page]");
  if (page || !shown.size) return; // a market's page has its own script
  const markets = [...new Set([...shown.keys()].map((key) => key.split(":")[0]))].slice(0, 100);
  const price = (found) => { for (const element of shown.get(`${found.market_id}:${found.outcome}`) || []) show(element, found); };
  const market = (change) => { if (change.to_status !== "ACTIVE") price({ market_id: change.market_id, outcome: 0 }); };
  follow({ markets, types: ["price", "market"] }, { price, market });
}

function times() {
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const text = words.ago(Date.parse(element.dateTime));
    if (element.textContent !== text) element.textContent = text;
  }
}

async function renew(part) {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById(part.id);
    if (fresh) part.replaceChildren(...fresh.childNodes);
  } catch { /* retried on the next interval */ }
}

function copying() {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy).textContent;
      const said = button.textContent;
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Select and copy it"; }
      setTimeout(() => { button.textContent = said; }, 2000);
    });
  }
}

function firstCall() {
  const button = document.getElementById("first-call");
  if (!button) return;
  const output = document.getElementById("first-answer");
  button.addEventListener("click", async () => {
    output.hidden = false;
    output.textContent = "…";
    try {
      const began = performance.now();
      const answer = await fetch(button.dataset.url, { headers: { "X-API-Key": document.getElementById("key").textContent } });
      const text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is not JSON */ }
      const left = answer.headers.get("X-Credits-Remaining");
      output.textContent = `${answer.status} in ${Math.round(performance.now() - began)} ms, ${left} credits left\n\n${shown.slice(0, 20000)}`;
    } catch (error) { output.textContent = `The API cannot be reached from this browser: ${error}`; }
  });
}

prices();
setInterval(times, 1000);
for (const part of document.querySelectorAll("[data-renew]")) setInterval(renew, Number(part.dataset.renew) * 1000, part);
copying();
firstCall();
export { show };
