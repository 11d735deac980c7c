// Mermaid diagrams of a guide: each fenced block is drawn as an image. Without this script its source text is shown.
const FONT = 14; // pixels
let drawn = 0;

// Colours of the current theme, as computed values: Mermaid does not read variables of a style sheet.
function colours() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const found = {};
  for (const name of ["back", "panel", "soft", "line", "text", "muted"]) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

function configure() {
  const { back, panel, soft, line, text, muted } = colours();
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    theme: "base",
    fontFamily: "system-ui, sans-serif",
    flowchart: { useMaxWidth: false, wrappingWidth: 280 },
    themeVariables: {
      background: back, primaryColor: soft, primaryTextColor: text, primaryBorderColor: muted, lineColor: muted,
      secondaryColor: panel, tertiaryColor: panel, textColor: text, titleColor: text, clusterBkg: panel, clusterBorder: line,
      edgeLabelBackground: back, fontFamily: "system-ui, sans-serif", fontSize: `${FONT}px`,
      useGradient: false, dropShadow: "none",
    },
  });
}

async function draw(source, figure) {
  try {
    const { svg } = await mermaid.render(`diagram-${drawn++}`, source.textContent);
    figure.innerHTML = svg;
  } catch { return; } // a diagram that cannot be drawn stays text
  figure.hidden = false;
  source.hidden = true;
}

async function start() {
  const found = [];
  for (const code of document.querySelectorAll("pre > code.language-mermaid")) {
    const source = code.parentElement;
    const figure = document.createElement("div");
    Object.assign(figure, { className: "diagram", hidden: true, tabIndex: 0 });
    source.after(figure);
    found.push([source, figure]);
  }
  let last = Promise.resolve();
  const all = () => { // one after the other: the library's configuration is global
    last = last.then(async () => {
      configure();
      for (const [source, figure] of found) await draw(source, figure);
    }).catch(() => {}); // they stay as they are, and the next change of theme draws again
  };
  all();
  document.documentElement.addEventListener("themechange", all);
}

if (globalThis.mermaid) start();
