// Live events over EventSource. Hidden pages close their connection: browsers allow six per site.
export function follow({ markets, types, outcome = 0 }, handlers) {
  const query = new URLSearchParams({ markets: markets.join(","), types: types.join(","), outcome, pass: document.body.dataset.pass });
  let source = null;
  const lamp = document.getElementById("lamp");
  const lit = (on) => { if (lamp) { if (on) lamp.dataset.on = ""; else delete lamp.dataset.on; } };
  const open = () => {
    if (source) return;
    source = new EventSource(`/live?${query}`);
    source.addEventListener("hello", () => lit(true));
    source.addEventListener("error", () => lit(false));
    for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  };
  const close = () => { source?.close(); source = null; lit(false); };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}
