// Runs the snippet of docs/stream.md: node follow.mjs SNIPPET ADDRESS KEY RESUME_FROM COUNT, and prints what it received.
import { readFile } from "node:fs/promises";

globalThis.WebSocket ??= (await import("ws")).WebSocket;
const [snippet, address, key, resumeFrom, count] = process.argv.slice(2);
const source = await readFile(snippet, "utf8");
const { follow } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

let heard = 0;
const stream = follow(address, {
  key,
  types: ["trade"],
  wallets: ["0x" + "c".repeat(40)],
  resumeFrom: Number(resumeFrom),
  onEvent: (event) => {
    console.log(JSON.stringify({ type: event.type, seq: event.seq }));
    heard += 1;
    if (heard === Number(count)) stream.close();
  },
  onGap: (after, upto) => console.log(JSON.stringify({ gap: [after, upto] })),
});
