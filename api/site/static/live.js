// The site's live events. A page that nobody looks at lets go of its connection: a browser has six for a whole site.
export function follow({ markets, types, outcome = 0 }, heard) {
  const query = new URLSearchParams({ markets: markets.join(","), types: types.join(","), outcome, pass: document.body.dataset.pass });
  let source = null;
  const lamp = document.getElementById("lamp");
  const lit = (on) => { if (lamp) { if (on) lamp.dataset.on = ""; else delete lamp.dataset.on; } };
  const open = () => {
    if (source) return;
    source = new EventSource(`/live?${query}`);
    source.addEventListener("hello", () => lit(true));
    source.addEventListener("error", () => lit(false));
    for (const [kind, hear] of Object.entries(heard)) source.addEventListener(kind, (event) => hear(JSON.parse(event.data)));
  };
  const close = () => { source?.close(); source = null; lit(false); };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}
