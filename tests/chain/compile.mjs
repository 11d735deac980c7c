// Compiles the Solidity file of its argument, and prints {contract: {code, abi, selectors}}.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import solc from "solc";

const path = process.argv[2];
const name = basename(path);
const input = {
  language: "Solidity",
  sources: { [name]: { content: readFileSync(path, "utf8") } },
  settings: {
    evmVersion: "cancun",
    optimizer: { enabled: true },
    outputSelection: { "*": { "*": ["abi", "evm.deployedBytecode.object", "evm.methodIdentifiers"] } },
  },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
for (const { severity, formattedMessage } of output.errors ?? []) {
  process.stderr.write(formattedMessage);
  if (severity === "error") process.exitCode = 1;
}
if (!process.exitCode) {
  const contracts = Object.entries(output.contracts[name]).map(([contract, { abi, evm }]) => [
    contract,
    { code: evm.deployedBytecode.object, abi, selectors: evm.methodIdentifiers },
  ]);
  process.stdout.write(JSON.stringify(Object.fromEntries(contracts)));
}
