// Loaded before the first paint, so that the chosen theme does not flash. All other scripts are deferred.
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
  const notify = () => root.dispatchEvent(new Event("themechange"));
  system.addEventListener("change", notify);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const say = () => { button.setAttribute("aria-label", dark() ? "Light theme" : "Dark theme"); };
    button.hidden = false;
    say();
    button.addEventListener("click", () => {
      const wanted = dark() ? "light" : "dark";
      // A choice equal to the system's preference is not stored.
      const same = wanted === (system.matches ? "dark" : "light");
      try { if (same) localStorage.removeItem("theme"); else localStorage.setItem("theme", wanted); } catch { root.dataset.theme = wanted; }
      apply();
      say();
      notify();
    });
    system.addEventListener("change", say);
  });
})();
