// The one connection: when it tries again, what it asks for, what it tells (R3, C1).
import assert from "node:assert/strict"
import { beforeEach, mock, test } from "node:test"
import { LONGEST_MS, SHORTEST_MS, pauseMs } from "../../static/live/backoff.js"
import { CALM_MS, Client, HANDSHAKE_MS, SILENCE_MS, STALE_MS, STEADY_MS } from "../../static/live/client.js"
import { createCursor, isBehind, take } from "../../static/live/cursor.js"

/** The browser's end of a connection, in the test's hand. */
class Line extends EventTarget {
  readyState = 0
  /** @type {any[]} */
  sent = []
  /** @param {string} text */
  send(text) {
    this.sent.push(JSON.parse(text))
  }
  open() {
    this.readyState = 1
    this.dispatchEvent(new Event("open"))
  }
  /** @param {object} frame */
  say(frame) {
    this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(frame) }))
  }
  close(code = 1006) {
    if (this.readyState === 3) return
    this.readyState = 3
    this.dispatchEvent(Object.assign(new Event("close"), { code }))
  }
}

/** @type {Line[]} */
let lines = []
/** @type {Client} */
let client
const last = () => lines[lines.length - 1]

beforeEach(() => {
  mock.timers.reset()
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 })
  lines = []
  client = new Client(
    () => {
      const line = new Line()
      lines.push(line)
      return /** @type {WebSocket} */ (/** @type {unknown} */ (line))
    },
    () => 0,
  )
})

/** Subscribes, and keeps what was told. @param {string} stream @param {import("../../static/live/client.js").Handlers} [handlers] */
function read(stream, handlers = {}) {
  /** @type {any[]} */
  const told = []
  const end = client.subscribe(stream, {
    onSnapshot: (frame) => told.push(["snapshot", frame.seq]),
    onEvents: (events) => told.push(["events", ...events.map((event) => event.seq)]),
    onState: (state) => told.push(["state", state]),
    onRows: (rows) => told.push(["rows", ...rows]),
    onPresence: (frame) => told.push(["presence", frame.readers]),
    onAnswer: (frame) => told.push([frame.type, frame.request_id]),
    onError: (error) => told.push(["error", error.code]),
    ...handlers,
  })
  return { told, end }
}
/** @param {...number} seqs */
const events = (...seqs) => ({ type: "events", stream: "document:7", events: seqs.map((seq) => ({ seq })) })

test("pauses grow from one second to thirty, and differ by chance", () => {
  assert.equal(pauseMs(0, 0), SHORTEST_MS)
  for (let failures = 0; failures < 40; failures++) {
    for (const chance of [0, 0.5, 0.999]) {
      const pause = pauseMs(failures, chance)
      assert.ok(pause >= SHORTEST_MS && pause <= LONGEST_MS, `${pause} after ${failures} failures`)
    }
    assert.ok(pauseMs(failures, 0.9) > pauseMs(failures, 0.1))
  }
  assert.ok(pauseMs(10, 0.999) > LONGEST_MS * 0.99)
})

test("facts follow each other, are told once, and a gap is seen", () => {
  const stream = "document:7"
  let cursor = take(createCursor(), { type: "snapshot", stream, seq: 5, state: {} }).cursor
  const first = take(cursor, { type: "events", stream, events: [{ seq: 5 }, { seq: 6 }] })
  assert.deepEqual(first.news, { type: "events", stream, events: [{ seq: 6 }] })
  cursor = first.cursor
  assert.equal(take(cursor, { type: "events", stream, events: [{ seq: 6 }] }).news, null)
  assert.deepEqual(take(cursor, { type: "events", stream, events: [{ seq: 8 }] }), { cursor, news: null, gap: true })
  assert.deepEqual([isBehind(cursor, 6), isBehind(cursor, 7), isBehind(createCursor(), 7)], [false, true, false])
})

test("a lower version of a state is dropped, and a snapshot begins anew", () => {
  const state = (/** @type {number} */ version) =>
    /** @type {const} */ ({ type: "state", stream: "conversation:1", version, state: {} })
  const { cursor } = take(createCursor(3), state(7))
  assert.equal(take(cursor, state(7)).news, null)
  assert.equal(take(cursor, state(6)).news, null)
  assert.notEqual(take(cursor, state(8)).news, null)
  const fresh = take(cursor, { type: "snapshot", stream: "conversation:1", seq: 3, state: {} }).cursor
  assert.notEqual(take(fresh, state(1)).news, null)
})

test("the first subscription opens the connection and asks", () => {
  const { told } = read("document:7", { after: 3 })
  read("team")
  assert.equal(lines.length, 1)
  last().open()
  assert.deepEqual(last().sent, [
    { op: "subscribe", stream: "document:7", after: 3 },
    { op: "subscribe", stream: "team" },
  ])
  last().say(events(4, 5))
  last().say({ type: "presence", document: 7, people: [], readers: 2 })
  last().say({ type: "accepted", document: 7, request_id: "a", revision: 5 })
  assert.deepEqual(told, [
    ["events", 4, 5],
    ["presence", 2],
    ["accepted", "a"],
  ])
})

test("after a loss it comes back by itself and asks for what came after", () => {
  const { told } = read("document:7")
  last().open()
  last().say({ type: "snapshot", stream: "document:7", seq: 9, state: {} })
  last().say(events(10))
  mock.timers.tick(STEADY_MS)
  last().close()
  mock.timers.tick(SHORTEST_MS)
  assert.equal(lines.length, 2)
  last().open()
  assert.deepEqual(last().sent, [{ op: "subscribe", stream: "document:7", after: 10 }])
  last().say(events(10, 11))
  assert.deepEqual(told, [
    ["snapshot", 9],
    ["events", 10],
    ["events", 11],
  ])
})

test("what a reader sends when a connection begins goes out before it asks", () => {
  read("document:7", {
    onConnect: () => {
      client.send({ op: "edit" })
      return 42
    },
  })
  last().open()
  assert.deepEqual(last().sent, [{ op: "edit" }, { op: "subscribe", stream: "document:7", after: 42 }])
})

test("a gap is asked for, and so is what a heartbeat tells of", () => {
  const { told } = read("document:7", { after: 3 })
  last().open()
  last().sent = []
  last().say(events(5))
  assert.deepEqual(last().sent, [{ op: "subscribe", stream: "document:7", after: 3 }])
  last().say(events(4, 5))
  last().sent = []
  last().say({ type: "heads", heads: { "document:7": 5, "document:8": 9 } })
  assert.deepEqual(last().sent, [])
  last().say({ type: "heads", heads: { "document:7": 6 } })
  assert.deepEqual(last().sent, [{ op: "subscribe", stream: "document:7", after: 5 }])
  assert.deepEqual(told, [["events", 4, 5]])
})

test("a handshake that hangs is given up after ten seconds", () => {
  read("team")
  mock.timers.tick(HANDSHAKE_MS - 1)
  assert.equal(lines.length, 1)
  mock.timers.tick(1)
  mock.timers.tick(SHORTEST_MS)
  assert.equal(lines.length, 2)
  assert.equal(lines[0].readyState, 3)
})

test("failures in a row wait longer, and a steady connection begins anew", () => {
  read("team")
  const waits = []
  for (let i = 0; i < 7; i++) {
    const before = lines.length
    last().close()
    let waited = 0
    while (lines.length === before) {
      mock.timers.tick(500)
      waited += 500
    }
    waits.push(waited)
  }
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 15000, 15000, 15000])
  last().open()
  mock.timers.tick(STEADY_MS)
  last().close()
  mock.timers.tick(SHORTEST_MS)
  assert.equal(lines.length, 9)
})

test("a connection that is opened and closed at once is no success", () => {
  read("team")
  last().open()
  last().close()
  mock.timers.tick(SHORTEST_MS)
  last().open()
  last().close()
  mock.timers.tick(SHORTEST_MS)
  assert.equal(lines.length, 2)
})

test("silence is a loss", () => {
  read("team")
  last().open()
  mock.timers.tick(SILENCE_MS - 1000)
  last().say({ type: "heads", heads: {} })
  mock.timers.tick(SILENCE_MS - 1000)
  assert.equal(lines.length, 1)
  mock.timers.tick(10_000)
  assert.equal(lines[0].readyState, 3)
})

test("a page that is looked at again does not wait", () => {
  read("team")
  last().close()
  client.wake()
  assert.equal(lines.length, 2)
  client.wake()
  assert.equal(lines.length, 2)
  last().open()
  client.wake()
  assert.equal(lines.length, 2, "a connection that speaks is kept")
  mock.timers.tick(STALE_MS + 1)
  client.wake()
  assert.equal(lines.length, 3, "a silent one is not")
})

test("the status: calm first, then since when", () => {
  /** @type {string[]} */
  const names = []
  client.onStatus((status) => names.push(status.name))
  read("document:7", { after: 1 })
  last().open()
  assert.deepEqual(names, ["connecting"])
  last().say(events())
  assert.deepEqual(names, ["connecting", "live"])
  mock.timers.tick(STEADY_MS)
  const lost = Date.now()
  last().close()
  assert.equal(client.status.name, "catching up")
  mock.timers.tick(CALM_MS + 1)
  assert.equal(client.status.name, "offline")
  assert.equal(client.status.since.getTime(), lost)
  last().open()
  assert.equal(client.status.name, "catching up")
  last().say({ type: "heads", heads: { "document:7": 1 } })
  assert.equal(client.status.name, "live")
})

test("a short loss is never called offline", () => {
  /** @type {string[]} */
  const names = []
  read("document:7", { after: 1 })
  last().open()
  last().say(events())
  client.onStatus((status) => names.push(status.name))
  mock.timers.tick(STEADY_MS)
  last().close()
  mock.timers.tick(SHORTEST_MS)
  last().open()
  last().say(events())
  mock.timers.tick(CALM_MS * 2)
  assert.deepEqual(names, ["live", "catching up", "live"])
})

test("signed out is said, and not tried again", () => {
  read("team")
  last().open()
  last().close(4001)
  assert.equal(client.status.name, "signed out")
  mock.timers.tick(LONGEST_MS * 2)
  client.wake()
  assert.equal(lines.length, 1)
})

test("an error ends its stream only, and one that passes is asked again", () => {
  const gone = read("document:7")
  const busy = read("document:8")
  last().open()
  last().sent = []
  last().say({ type: "error", stream: "document:7", error: { code: "not_found", message: "" } })
  last().say({ type: "error", stream: "document:8", error: { code: "unavailable", message: "" } })
  assert.deepEqual(gone.told, [["error", "not_found"]])
  assert.deepEqual(busy.told, [])
  mock.timers.tick(SHORTEST_MS)
  assert.deepEqual(last().sent, [
    { op: "unsubscribe", stream: "document:7" },
    { op: "subscribe", stream: "document:8" },
  ])
})

test("the last reader of a stream leaves it", () => {
  const one = read("team")
  const two = read("team")
  last().open()
  last().sent = []
  one.end()
  assert.deepEqual(last().sent, [])
  two.end()
  two.end()
  assert.deepEqual(last().sent, [{ op: "unsubscribe", stream: "team" }])
  last().say({ type: "rows", stream: "team", version: 1, rows: [1] })
  assert.deepEqual(two.told, [])
})
