// Depth chart: cumulative size by price as steps, bids on the left, asks on the right.
const NS = "http://www.w3.org/2000/svg";
const WIDTH = 400;
const HEIGHT = 100;

function steps(levels) {
  let total = 0;
  return levels.map(({ price, size }) => ({ price, total: (total += size) }));
}

export function depth(element, { bids, asks }) {
  const sides = { bid: steps(bids), ask: steps(asks) };
  const every = [...sides.bid, ...sides.ask];
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true"); // the book beside it has the same figures as text
  if (every.length) {
    const low = Math.min(...every.map((level) => level.price));
    const high = Math.max(...every.map((level) => level.price));
    const most = Math.max(...every.map((level) => level.total));
    const x = (price) => (high === low ? WIDTH / 2 : ((price - low) / (high - low)) * WIDTH);
    const y = (total) => HEIGHT - (total / most) * (HEIGHT - 6);
    for (const [name, levels] of Object.entries(sides)) {
      if (!levels.length) continue;
      let path = `M${x(levels[0].price)},${HEIGHT}`;
      let height = HEIGHT;
      for (const level of levels) {
        path += `L${x(level.price)},${height}`;
        height = y(level.total);
        path += `L${x(level.price)},${height}`;
      }
      const end = name === "bid" ? 0 : WIDTH;
      path += `L${end},${height}L${end},${HEIGHT}Z`;
      const shape = document.createElementNS(NS, "path");
      shape.setAttribute("d", path);
      shape.setAttribute("class", name);
      svg.append(shape);
    }
  }
  element.replaceChildren(svg);
  element.dataset.levels = every.length;
}
