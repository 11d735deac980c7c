// Loaded before anything is painted, so that a chosen theme does not flash. Everything else waits.
"use strict";
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const apply = () => {
    const theme = chosen();
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
  };
  apply();
  const dark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const told = () => root.dispatchEvent(new Event("themechange"));
  system.addEventListener("change", told);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const say = () => { button.setAttribute("aria-label", dark() ? "Light theme" : "Dark theme"); };
    button.hidden = false;
    say();
    button.addEventListener("click", () => {
      const wanted = dark() ? "light" : "dark";
      // What the system prefers anyway need not be kept.
      const same = wanted === (system.matches ? "dark" : "light");
      try { if (same) localStorage.removeItem("theme"); else localStorage.setItem("theme", wanted); } catch { root.dataset.theme = wanted; }
      apply();
      say();
      told();
    });
    system.addEventListener("change", say);
  });
})();
