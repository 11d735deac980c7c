// Number, price and time formatting; identical to `formatting.py`.
const NOTHING = "–";
const group = (value, digits) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const cents = (price) => (price == null ? NOTHING : `${(price * 100).toFixed(1)}¢`);

export function chance(price) {
  if (price == null) return NOTHING;
  if (price > 0 && price < 0.01) return "<1 %";
  if (price > 0.99 && price < 1) return ">99 %";
  return `${(price * 100).toFixed(0)} %`;
}

export function usd(amount) {
  if (amount == null) return NOTHING;
  const size = Math.abs(amount);
  const before = amount < 0 ? "-" : "";
  if (size >= 1e9) return `${before}$${group(size / 1e9, 2)}B`;
  if (size >= 1e6) return `${before}$${group(size / 1e6, 2)}M`;
  if (size >= 1e4) return `${before}$${group(size / 1e3, 0)}k`;
  return `${before}$${group(size, 2)}`;
}

export const number = (value, digits = 0) => (value == null ? NOTHING : group(value, digits));

export function duration(seconds) {
  if (seconds > 0 && seconds < 1) return "<1 s";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return "0 s";
}

export function ago(ms, now = Date.now()) {
  const passed = (now - ms) / 1000;
  return passed >= 0 ? `${duration(passed)} ago` : `in ${duration(-passed)}`;
}

export const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
