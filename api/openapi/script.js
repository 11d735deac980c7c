"use strict";
const key = document.getElementById("key");
key.value = sessionStorage.getItem("key") || "";
key.addEventListener("input", () => sessionStorage.setItem("key", key.value));

document.getElementById("find").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const item of document.querySelectorAll("nav li")) {
    const link = item.firstElementChild;
    item.hidden = !(link.textContent + link.title).toLowerCase().includes(wanted);
  }
});

const SHOWN = ["x-request-cost", "x-credits-remaining", "ratelimit", "retry-after", "x-request-id"];

async function send(form, output) {
  const headers = {};
  const query = new URLSearchParams();
  let path = form.dataset.path;
  let body;
  if (key.value) headers["X-API-Key"] = key.value;
  for (const { name, value, dataset } of form.elements) {
    if (name === "body") { body = value; headers["Content-Type"] = "application/json"; continue; }
    if (!name || value === "") continue;
    if (dataset.in === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (dataset.in === "header") headers[name] = value;
    else query.set(name, value);
  }
  const url = query.size ? `${path}?${query}` : path;
  const began = performance.now();
  const answer = await fetch(url, { method: form.dataset.method, headers, body });
  const text = await answer.text();
  const told = SHOWN.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
  let shown = text;
  try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is not JSON */ }
  output.textContent = [
    `${form.dataset.method} ${url}`, `${answer.status} in ${Math.round(performance.now() - began)} ms`, ...told, "", shown.slice(0, 100000),
  ].join("\n");
}

for (const form of document.forms) {
  const output = form.nextElementSibling;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    output.hidden = false;
    output.textContent = "…";
    try { await send(form, output); } catch (error) { output.textContent = String(error); }
  });
}
