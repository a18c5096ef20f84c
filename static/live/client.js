// The one connection of a tab: it opens, is lost, comes back and catches up by number (R3, C1). No DOM here.

import { pauseMs } from "./backoff.js"
import { createCursor, isBehind, take } from "./cursor.js"

/** A handshake that hangs blocks everything behind it: it is given up and tried again. */
export const HANDSHAKE_MS = 10_000

/** Heartbeats come at least every 20 s; twice that and some is silence. */
export const SILENCE_MS = 45_000

/** On a page that is looked at again, one missed heartbeat is enough to try a new connection. */
export const STALE_MS = 25_000

/** A loss shorter than this is "catching up"; after it the page says since when it is offline. */
export const CALM_MS = 4_000

/** A connection that held this long was a good one: the next loss begins with the shortest pause. */
export const STEADY_MS = 5_000

/** Close codes after which trying again is of no use: not signed in any more, or not let in. */
const FINAL = new Set([4001, 4003])

/** Errors (503) of a stream that pass by themselves: it is asked for again. */
const NOT_NOW = new Set(["busy", "unavailable", "outcome_unknown"])

/** What was said of a stream before it was watched, as a cursor of somebody who just came back: nothing is lost. */
const NOT_WATCHING = "not_subscribed"

/**
 * @typedef {"connecting" | "live" | "catching up" | "offline" | "signed out"} StatusName
 * @typedef {{name: StatusName, since: Date}} Status `since` when this began; offline: when the connection was lost
 *
 * @typedef {object} Handlers
 * @property {number} [after] the last fact that the page has; without it a snapshot comes first
 * @property {() => number | undefined} [onConnect] a connection began. What is sent now goes out before this stream is asked for;
 *   the answer, if any, is the number to ask after.
 * @property {(frame: import("./cursor.js").SnapshotFrame) => void} [onSnapshot]
 * @property {(events: import("./cursor.js").Fact[]) => void} [onEvents] consecutive, and none twice
 * @property {(state: any, frame: import("./cursor.js").StateFrame) => void} [onState]
 * @property {(rows: any[], frame: import("./cursor.js").RowsFrame) => void} [onRows]
 * @property {(frame: any) => void} [onPresence]
 * @property {(frame: any) => void} [onAnswer] accepted or refused
 * @property {(frame: any) => void} [onRefusal] somebody else's batch was refused
 * @property {(error: {code: string, message: string}) => void} [onError] of this stream: it is over
 *
 * @typedef {{handlers: Handlers, cursor: import("./cursor.js").Cursor, answered: boolean}} Reader
 */

export class Client {
  /** @type {Map<string, Set<Reader>>} */
  #readers = new Map()
  /** @type {Set<(status: Status) => void>} */
  #listeners = new Set()
  /** @type {WebSocket | null} */
  #socket = null
  /** @type {Status} */
  #status
  #failures = 0
  #heard = 0
  #opened = 0
  #lost = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retry
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #handshake
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #watch

  /**
   * @param {() => WebSocket} connect
   * @param {() => number} [chance]
   */
  constructor(connect, chance = Math.random) {
    this.connect = connect
    this.chance = chance
    this.#status = { name: "connecting", since: new Date() }
  }

  get status() {
    return this.#status
  }

  /** How many streams are read. */
  get streams() {
    return this.#readers.size
  }

  /**
   * Reads a stream from now on, over every loss of the connection. The first subscription opens it.
   * @param {string} stream
   * @param {Handlers} handlers
   * @returns {() => void} ends it
   */
  subscribe(stream, handlers) {
    const reader = { handlers, cursor: createCursor(handlers.after), answered: false }
    const readers = this.#readers.get(stream) ?? new Set()
    readers.add(reader)
    this.#readers.set(stream, readers)
    if (this.#isOpen()) this.#ask(stream, reader)
    else this.#open()
    this.#tell()
    return () => this.#leave(stream, reader)
  }

  /**
   * Sends a frame if there is a connection. What must not be lost is sent again by its `onConnect`.
   * @param {object} frame
   * @returns {boolean} whether it was sent
   */
  send(frame) {
    if (!this.#isOpen()) return false
    this.#socket?.send(JSON.stringify(frame))
    return true
  }

  /**
   * Asks for a stream anew, after what its readers have, or after `after`.
   * @param {string} stream
   * @param {number} [after]
   */
  ask(stream, after) {
    for (const reader of this.#readers.get(stream) ?? []) {
      if (after !== undefined) reader.cursor = createCursor(after)
      if (this.#isOpen()) this.#ask(stream, reader)
    }
  }

  /**
   * @param {(status: Status) => void} listener told at once, and at each change
   * @returns {() => void} ends it
   */
  onStatus(listener) {
    this.#listeners.add(listener)
    listener(this.#status)
    return () => this.#listeners.delete(listener)
  }

  /** The page is looked at again, or the machine is on the net again: no pause goes on, and a silent connection is given up. */
  wake() {
    if (this.#status.name === "signed out" || !this.#readers.size) return
    if (this.#isOpen()) {
      if (Date.now() - this.#heard > STALE_MS) this.#drop()
      else return
    }
    this.#open()
  }

  close() {
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#end()
  }

  #isOpen() {
    return this.#socket?.readyState === 1
  }

  #open() {
    if (this.#socket) return
    clearTimeout(this.#retry)
    this.#retry = undefined
    const socket = this.connect()
    this.#socket = socket
    this.#handshake = setTimeout(() => this.#drop(), HANDSHAKE_MS)
    socket.addEventListener("open", () => socket === this.#socket && this.#began())
    socket.addEventListener("message", (event) => socket === this.#socket && this.#received(event.data))
    socket.addEventListener("close", (event) => socket === this.#socket && this.#drop(event.code))
  }

  #began() {
    clearTimeout(this.#handshake)
    this.#opened = this.#heard = Date.now()
    this.#watch = setInterval(() => {
      if (Date.now() - this.#heard > SILENCE_MS) this.#drop()
    }, SILENCE_MS / 9)
    for (const [stream, readers] of this.#readers) {
      for (const reader of readers) {
        const after = reader.handlers.onConnect?.()
        if (after !== undefined) reader.cursor = createCursor(after)
        this.#ask(stream, reader)
      }
    }
    this.#tell()
  }

  /** The connection is lost, or given up; it is tried again after a pause. */
  #drop(code = 0) {
    const held = this.#opened > 0 && Date.now() - this.#opened >= STEADY_MS
    this.#failures = held ? 0 : this.#failures + 1
    if (this.#opened || !this.#lost) this.#lost = Date.now()
    this.#end()
    if (FINAL.has(code)) {
      this.#readers.clear()
      return this.#become("signed out")
    }
    this.#retry = setTimeout(() => this.#open(), pauseMs(Math.max(0, this.#failures - 1), this.chance()))
    setTimeout(() => this.#tell(), CALM_MS + 1)
    this.#tell()
  }

  #end() {
    clearTimeout(this.#handshake)
    clearInterval(this.#watch)
    const socket = this.#socket
    this.#socket = null
    this.#opened = 0
    for (const readers of this.#readers.values()) for (const reader of readers) reader.answered = false
    socket?.close()
  }

  /**
   * @param {string} stream
   * @param {Reader} reader
   */
  #ask(stream, reader) {
    this.send({ op: "subscribe", stream, after: reader.cursor.seq })
  }

  /**
   * @param {string} stream
   * @param {Reader} reader
   */
  #leave(stream, reader) {
    const readers = this.#readers.get(stream)
    if (!readers?.delete(reader) || readers.size) return
    this.#readers.delete(stream)
    this.send({ op: "unsubscribe", stream })
    this.#tell()
  }

  /** @param {string} data */
  #received(data) {
    this.#heard = Date.now()
    const frame = JSON.parse(data)
    if (frame.type === "heads") return this.#compare(frame.heads)
    const stream = frame.stream ?? (frame.document === undefined ? undefined : `document:${frame.document}`)
    for (const reader of [...(this.#readers.get(stream) ?? [])]) this.#deliver(stream, reader, frame)
    this.#tell()
  }

  /**
   * @param {string} stream
   * @param {Reader} reader
   * @param {any} frame
   */
  #deliver(stream, reader, frame) {
    const { handlers } = reader
    if (frame.type === "accepted" || frame.type === "refused") return handlers.onAnswer?.(frame)
    if (frame.type === "presence") return handlers.onPresence?.(frame)
    if (frame.type === "refusal") return handlers.onRefusal?.(frame)
    if (frame.type === "error") return this.#failed(stream, reader, frame.error)
    reader.answered = true
    const { cursor, news, gap } = take(reader.cursor, frame)
    reader.cursor = cursor
    if (gap) this.#ask(stream, reader)
    else if (news?.type === "snapshot") handlers.onSnapshot?.(news)
    else if (news?.type === "events") handlers.onEvents?.(news.events)
    else if (news?.type === "state") handlers.onState?.(news.state, news)
    else if (news?.type === "rows") handlers.onRows?.(news.rows, news)
  }

  /**
   * @param {string} stream
   * @param {Reader} reader
   * @param {{code: string, message: string}} error
   */
  #failed(stream, reader, error) {
    if (error.code === NOT_WATCHING) return
    if (NOT_NOW.has(error.code)) {
      setTimeout(() => this.#readers.get(stream)?.has(reader) && this.#ask(stream, reader), pauseMs(0, this.chance()))
      return
    }
    this.#leave(stream, reader)
    reader.handlers.onError?.(error)
  }

  /** @param {Record<string, number>} heads */
  #compare(heads) {
    for (const [stream, head] of Object.entries(heads)) {
      for (const reader of this.#readers.get(stream) ?? []) {
        if (isBehind(reader.cursor, head)) this.#ask(stream, reader)
        else if (reader.cursor.seq !== undefined) reader.answered = true
      }
    }
    this.#tell()
  }

  #tell() {
    if (this.#status.name === "signed out") return
    if (this.#isOpen()) {
      const readers = [...this.#readers.values()].flatMap((some) => [...some])
      const caughtUp = readers.every((reader) => reader.answered)
      if (caughtUp) this.#lost = 0
      this.#become(
        caughtUp ? "live" : this.#lost ? "catching up" : this.#status.name === "live" ? "live" : "connecting",
      )
    } else if (this.#lost && this.#readers.size) {
      this.#become(Date.now() - this.#lost < CALM_MS ? "catching up" : "offline")
    }
  }

  /** @param {StatusName} name */
  #become(name) {
    if (name === this.#status.name) return
    this.#status = { name, since: new Date(name === "offline" && this.#lost ? this.#lost : Date.now()) }
    for (const listener of this.#listeners) listener(this.#status)
  }
}
