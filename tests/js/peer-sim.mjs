/**
 * Seeded schedules against the peer (D12, D13): people with a CodeMirror state and its history, agents, a server, and a
 * network that delays, drops, duplicates and reorders. A schedule is {seed, doc, humans, agents, ops: [[kind, who, a, b],
 * ...]}; numbers are taken modulo what exists, so that any sublist of ops is a schedule and a failing one shrinks.
 *
 *     node tests/js/peer-sim.mjs FROM TO [LENGTH]     plays seeds FROM to TO, ops per schedule; shrinks the first failures
 *     node tests/js/peer-sim.mjs replay FILE          plays one schedule
 */
import fs from "node:fs"
import { isMainThread } from "node:worker_threads"
import { EditorState, Transaction, history, redo, undo } from "../../static/built/codemirror.js"
import { applyEdits, isValidText, occurrences } from "../../static/documents/applier.js"
import { applyChanges, toText } from "../../static/documents/changes.js"
import * as peers from "../../static/documents/peer.js"
import { Authority } from "./authority.mjs"

/**
 * @typedef {[kind: string, who: number, a: number, b: number]} Op
 * @typedef {{seed: number, doc: string, humans: number, agents: number, ops: Op[]}} Schedule
 * @typedef {import("../../static/documents/peer.js").Frame | {type: "heads", head: number}} Down
 * @typedef {{op: "edit", actor: number, batch: peers.Batch}} EditFrame
 * @typedef {{up: (EditFrame | {op: "subscribe", after: number})[], pending: EditFrame[], late: Down[], down: Down[], sent: number | null}} Link
 * @typedef {{index: number, state: EditorState, peer: peers.Peer, link: Link | null, tries: Map<string, number>,
 *   removed: Set<string>}} Person
 * @typedef {{index: number, read: string, count: number, last: [string, string] | null}} Agent
 */

/** @param {number} seed mulberry32 */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const DOCS = [
  "\n",
  "a",
  "aaaaaaaaaa",
  "a".repeat(150),
  "\n".repeat(12),
  "\r\n\r\n\r\nab\r\n\r\n",
  "😀😁😀😁😀",
  "e\u0301".repeat(5) + "é\n",
  "👩‍👩‍👧👩‍👩‍👧\n👩‍👩‍👧\n",
  "ab\nab\nab\nab\n",
  "the quick brown fox\njumps over\n\nthe lazy dog\n",
  "one\ntwo\nthree\nfour\nfive\nsix\n".repeat(4),
  "x = 1\n".repeat(40),
  "abab".repeat(60),
]
const PASTES = [
  "a",
  "aaaa",
  "\n\n",
  "\r\n",
  "😀",
  "😁😀",
  "\u0301",
  "ab",
  "abab\n",
  "x = 1\n",
  "the ",
  "one\ntwo\n",
  "a".repeat(70),
  "\u200d👧",
]
const INVALID = ["\0", "\ud83d", "\ude00", "a\0b", "\ude00\ud83d"]

/** How often each kind of step comes. */
const WEIGHTS = {
  // typing
  type: 14,
  run: 14,
  del: 5,
  repl: 4,
  half: 2,
  paste: 4,
  wipe: 0.5,
  invalid: 1,
  undo: 6,
  redo: 2,
  // frames
  send: 22,
  up: 22,
  commit: 22,
  answer: 20,
  down: 26,
  hub: 20,
  // faults
  drop: 4,
  join: 14,
  zombie: 4,
  stale: 3,
  dup: 1.5,
  lose: 0.7,
  heads: 2,
  busy: 1.5,
  later: 5,
  // agents
  read: 5,
  agent: 7,
  revert: 6,
}
const KINDS = Object.entries(WEIGHTS).flatMap(([kind, weight]) => Array(Math.round(weight * 2)).fill(kind))
const LOSSES = new Set(["drop", "lose", "stale"])

/**
 * @param {number} seed
 * @param {number} length
 * @returns {Schedule}
 */
export function schedule(seed, length) {
  const r = random(seed)
  const humans = 2 + Math.floor(r() * 5)
  const agents = 1 + Math.floor(r() * 3)
  const doc = DOCS[Math.floor(r() * DOCS.length)]
  const calm = r() < 0.3
  /** @type {Op[]} */
  const ops = []
  while (ops.length < length) {
    const kind = KINDS[Math.floor(r() * KINDS.length)]
    if (calm && LOSSES.has(kind)) continue
    ops.push([kind, Math.floor(r() * 12), Math.floor(r() * 1e6), Math.floor(r() * 1e6)])
  }
  return { seed, doc, humans, agents, ops }
}

/**
 * @param {unknown} ok
 * @param {string} what
 */
function assert(ok, what) {
  if (!ok) throw new Error(what)
}

/** @param {string} s @param {number} i */
const splits = (s, i) => i > 0 && i < s.length && (s.charCodeAt(i) & 0xfc00) === 0xdc00
/** @param {string} s @param {number} i */
const boundary = (s, i) => (splits(s, i) ? i - 1 : i)

/** Characters that are typed once in a schedule, so that each can be followed. @param {string} ch */
const isTag = (ch) => {
  const code = ch.codePointAt(0) ?? 0
  return code >= 0xf0000 || (code >= 0xe000 && code < 0xf900)
}
/** @param {string} text */
const tagsOf = (text) => [...text].filter(isTag)

/**
 * Plays a schedule, then lets everyone reconnect and run to rest. Throws when a promise of the peer is broken.
 *
 * @param {Schedule} schedule
 */
export function play({ seed, doc, humans, agents, ops }) {
  const r = random(seed ^ 0x5bd1e995)
  const server = new Authority(doc, { memory: 6 })
  const stats = { batches: 0, sends: 0, most: 0, typed: 0, deleted: 0, back: 0, twice: 0, undone: 0, postponed: 0 }
  /** @type {Map<string, number>} */
  const typed = new Map()
  /** @type {Set<string>} */
  const deleted = new Set()
  /** What undo and redo brought back: it may be in the text twice, when a deletion came back by itself too. @type {Set<string>} */
  const restored = new Set()
  /** @type {EditFrame[]} */
  const zombies = []

  /** @type {Person[]} */
  const people = Array.from({ length: humans }, (_, index) => ({
    index,
    state: EditorState.create({ doc: toText(doc), extensions: [history(), EditorState.lineSeparator.of("\n")] }),
    // some people have two tabs: the actor is the same, the name is not
    peer: peers.createPeer({ actor: index % 2 ? 1 : 100 + index, name: `p${index}`, text: doc, revision: 0 }),
    link: null,
    tries: new Map(),
    removed: new Set(),
  }))
  /** @type {Agent[]} */
  const robots = Array.from({ length: agents }, (_, index) => ({ index, read: doc, count: 0, last: null }))

  /** @param {number} who */
  const tag = (who) => {
    const n = stats.typed++
    const ch = n % 2 ? String.fromCodePoint(0xf0000 + n) : String.fromCharCode(0xe000 + (n % 6400))
    typed.set(ch, who)
    return ch
  }

  /** Shows what came, and holds the view against the peer. @param {Person} p @param {peers.Step[]} steps */
  const show = (p, steps) => {
    for (const { change } of steps) {
      p.state = p.state.update({ changes: change, annotations: Transaction.addToHistory.of(false) }).state
    }
    const text = p.state.doc.toString()
    assert(text === peers.viewText(p.peer), `view of p${p.index} is not what the peer holds`)
    assert(text.length > 0, "empty view")
    assert(isValidText(text), "the view holds what no document can")
    assert(peers.isSaved(p.peer) || peers.countUnsaved(p.peer) >= 0, "unsaved")
    const tags = tagsOf(text).filter((ch) => !restored.has(ch))
    if (new Set(tags).size < tags.length) stats.twice++
  }

  /** The person's own change, as a transaction of the view. @param {Person} p @param {Transaction} transaction */
  const change = (p, transaction) => {
    const before = p.state.doc.toString()
    transaction.changes.iterChanges((from, to) => {
      for (const ch of tagsOf(before.slice(boundary(before, from), to))) {
        deleted.add(ch)
        p.removed.add(ch)
      }
    })
    p.state = transaction.state
    const out = peers.localChange(p.peer, transaction.changes)
    p.peer = out.peer
    show(p, out.steps)
  }
  /** @param {Person} p @param {number} from @param {number} to @param {string} insert */
  const edit = (p, from, to, insert) => {
    change(
      p,
      p.state.update({
        changes: { from, to, insert: toText(insert) },
        selection: { anchor: from + insert.length },
        userEvent: "input.type",
      }),
    )
  }
  /** Undo takes back what this person did, and nothing else. @param {Person} p @param {typeof undo} command */
  const step = (p, command) => {
    command({
      state: p.state,
      dispatch: (transaction) => {
        const before = p.state.doc.toString()
        transaction.changes.iterChanges((from, to, _from, _to, inserted) => {
          for (const ch of tagsOf(before.slice(boundary(before, from), to))) {
            assert(typed.get(ch) === p.index || p.removed.has(ch), `p${p.index} undid what p${typed.get(ch)} typed`)
          }
          for (const ch of tagsOf(inserted.toString())) {
            assert(p.removed.has(ch), `p${p.index} brought back what it never deleted`)
            restored.add(ch)
          }
        })
        stats.undone++
        change(p, transaction)
      },
    })
  }

  /** @param {Person} p @param {peers.Batch | null} batch */
  const post = (p, batch) => {
    if (!batch || !p.link) return
    const { confirmed, flight } = p.peer
    assert(flight, "a batch without a flight")
    if (flight && confirmed.revision === flight.base) {
      const wanted = applyChanges(confirmed.text, flight.changes)
      assert(applyEdits(confirmed.text, batch.edits) === wanted, "the batch is not what the user saw")
      const strings = batch.edits.reduce((sum, e) => sum + e.old_string.length + e.new_string.length, 0)
      assert(strings <= confirmed.text.length + wanted.length, "the batch weighs more than both texts (D6)")
    }
    const tries = (p.tries.get(batch.request_id) ?? 0) + 1
    p.tries.set(batch.request_id, tries)
    stats.sends++
    if (tries === 1) stats.batches++
    stats.most = Math.max(stats.most, tries)
    p.link.up.push({ op: "edit", actor: p.peer.actor, batch: structuredClone(batch) })
  }
  /** @param {Person} p */
  const subscribe = (p) => p.link?.up.push({ op: "subscribe", after: p.peer.confirmed.revision })
  /** @param {Person} p */
  const join = (p) => {
    if (p.link) return
    p.link = { up: [], down: [], pending: [], late: [], sent: null }
    const out = peers.resume(p.peer)
    p.peer = out.peer
    post(p, out.batch)
    p.link.up.push({ op: "subscribe", after: out.after })
  }
  /** @param {Person} p */
  const send = (p) => {
    if (!p.link) return
    const out = peers.nextBatch(p.peer)
    p.peer = out.peer
    post(p, out.batch)
    show(p, [])
  }
  /** @param {Person} p */
  const later = (p) => {
    if (!p.link) return
    const out = peers.sendAgain(p.peer)
    p.peer = out.peer
    if (out.batch) stats.postponed++
    post(p, out.batch)
  }
  /** @param {Person} p */
  const up = (p) => {
    const frame = p.link?.up.shift()
    if (!frame || !p.link) return
    if (frame.op === "edit") {
      p.link.pending.push(frame)
    } else {
      p.link.down.push(r() < 0.3 ? server.snapshot() : server.catchUp(frame.after))
      p.link.sent = server.revision
    }
  }
  /** @param {Person} p */
  const down = (p) => {
    const frame = p.link?.down.shift()
    if (!frame) return
    if (frame.type === "heads") {
      if (frame.head > p.peer.confirmed.revision && !p.peer.held) subscribe(p)
      return
    }
    const out = peers.receive(p.peer, frame)
    p.peer = out.peer
    show(p, out.steps)
    if (p.peer.gap) {
      p.peer = { ...p.peer, gap: false }
      subscribe(p)
    }
    assert(!p.peer.stuck, `stuck: ${JSON.stringify(p.peer.stuck)}`)
  }
  /** @param {Person} p */
  const hub = (p, most = 1000) => {
    const link = p.link
    if (!link || link.sent === null || link.sent >= server.revision) return
    const to = Math.min(server.revision, link.sent + most)
    link.down.push({ type: "events", events: structuredClone(server.log.slice(link.sent, to)) })
    link.sent = to
  }
  /** @param {Person} p */
  const commit = (p) => {
    const frame = p.link?.pending.shift()
    if (frame) p.link?.late.push(server.append(frame.actor, frame.batch))
  }
  /** Events and snapshots may overtake an answer. @param {Person} p */
  const answer = (p) => {
    const frame = p.link?.late.shift()
    if (frame) p.link?.down.push(frame)
  }
  /** Frames of a dead connection may still reach the server later. @param {Person} p @param {number} a */
  const drop = (p, a) => {
    if (!p.link) return
    for (const frame of [...p.link.pending, ...p.link.up]) if (frame.op === "edit" && a % 3) zombies.push(frame)
    p.link = null
  }
  const zombie = () => {
    const frame = zombies.shift()
    if (frame) server.append(frame.actor, frame.batch)
  }

  /** @param {Agent} g @param {string} old @param {string} fresh */
  const write = (g, old, fresh) => {
    const request_id = `g${g.index}-${g.count++}`
    const edits = [{ old_string: old, new_string: fresh }]
    const accepted = server.append(1000 + g.index, { request_id, edits }).type === "accepted"
    if (accepted) for (const ch of tagsOf(old)) if (!fresh.includes(ch)) deleted.add(ch)
    return accepted
  }
  /** An agent edits what it read, which may be old. @param {Agent} g @param {number} a @param {number} b */
  const robot = (g, a, b) => {
    const text = g.read
    const from = boundary(text, a % text.length)
    let to = boundary(text, Math.min(text.length, from + 1 + (b % 20)))
    if (to <= from) to = Math.min(text.length, from + 2)
    const old = text.slice(from, to)
    if (!old || occurrences(text, old).count !== 1) return
    const paste = PASTES[b % PASTES.length]
    const fresh = ["", old + paste, paste, `<${g.index}.${g.count}>`, `<${g.index}.${g.count}>`][b % 5]
    if (write(g, old, fresh)) g.last = [fresh, old]
  }
  /** An agent takes its last edit back: text that was quoted before occurs again. @param {Agent} g */
  const revert = (g) => {
    if (g.last?.[0] && !tagsOf(g.last[1]).length) write(g, ...g.last)
    g.last = null
  }

  /** @type {Record<string, (p: Person, g: Agent, a: number, b: number, text: string, at: number) => void>} */
  const acts = {
    type: (p, _g, _a, b, _text, at) => edit(p, at, at, tag(p.index) + (b % 3 ? "" : tag(p.index))),
    run: (p, _g, _a, _b, text) => {
      const cursor = boundary(text, p.state.selection.main.head)
      edit(p, cursor, cursor, tag(p.index))
    },
    del: (p, _g, _a, b, text, at) => edit(p, at, boundary(text, Math.min(text.length, at + 1 + (b % 6))), ""),
    repl: (p, _g, _a, b, text, at) => edit(p, at, boundary(text, Math.min(text.length, at + (b % 12))), tag(p.index)),
    half: (p, _g, a, b, text) => {
      const pair = text.indexOf("\ud83d", a % text.length)
      if (pair >= 0 && pair + 1 < text.length) edit(p, pair + 1, pair + 2, b % 2 ? "\ude00" : "\ude01")
    },
    paste: (p, _g, _a, b, _text, at) => edit(p, at, at, PASTES[b % PASTES.length]),
    invalid: (p, _g, _a, b, _text, at) => edit(p, at, at, INVALID[b % INVALID.length]),
    wipe: (p, _g, a, b, text) => {
      if (b % 2) return edit(p, 0, text.length, "")
      const from = boundary(text, a % text.length)
      const to = splits(text, from + 1) ? from + 2 : from + 1
      edit(p, to, text.length, "")
      edit(p, 0, from, "")
    },
    undo: (p) => step(p, undo),
    redo: (p) => step(p, redo),
    send,
    up,
    commit,
    answer,
    down,
    join,
    later,
    hub: (p, _g, a) => hub(p, 1 + (a % 3)),
    drop: (p, _g, a) => drop(p, a),
    zombie,
    read: (_p, g) => {
      g.read = server.text
    },
    agent: (_p, g, a, b) => robot(g, a, b),
    revert: (_p, g) => revert(g),
    stale: ({ link }) => {
      if (!link || link.sent === null) return
      link.down.push(server.snapshot())
      link.sent = server.revision
    },
    dup: ({ link }) => {
      if (!link?.sent) return
      link.down.push({
        type: "events",
        events: structuredClone(server.log.slice(Math.max(0, link.sent - 3), link.sent)),
      })
    },
    lose: ({ link }) => {
      if (link && link.sent !== null && link.sent < server.revision) link.sent++
    },
    heads: ({ link }) => {
      if (link && link.sent !== null) link.down.push({ type: "heads", head: server.revision })
    },
    busy: () => {
      server.busy = 1
    },
  }

  for (const p of people) join(p)
  for (const [kind, who, a, b] of ops) {
    const p = people[who % humans]
    const text = p.state.doc.toString()
    acts[kind](p, robots[who % agents], a, b, text, boundary(text, a % (text.length + 1)))
  }

  const atRest = () =>
    zombies.length === 0 &&
    people.every(
      ({ link, peer }) =>
        link &&
        peers.isSaved(peer) &&
        peer.confirmed.revision === server.revision &&
        !(link.up.length + link.pending.length + link.late.length + link.down.length),
    )
  server.busy = 0
  for (let rounds = 0; !atRest(); rounds++) {
    assert(rounds < 3000, "no rest")
    if (r() < 0.5) zombie()
    for (const p of people) {
      join(p)
      if (r() < 0.7) send(p)
      if (r() < 0.3) later(p)
      if (r() < 0.7) up(p)
      if (r() < 0.7) commit(p)
      if (r() < 0.7) answer(p)
      hub(p)
      if (r() < 0.7) down(p)
    }
    if (rounds % 10 === 0)
      for (const { link } of people)
        if (link && link.sent !== null) link.down.push({ type: "heads", head: server.revision })
  }

  assert(server.fold() === server.text, "the record does not fold to the text")
  for (const p of people) assert(p.state.doc.toString() === server.text, `p${p.index} differs from the server`)
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const ch of tagsOf(server.text)) counts.set(ch, (counts.get(ch) ?? 0) + 1)
  for (const [ch, who] of typed) {
    const count = counts.get(ch) ?? 0
    const name = `${ch.codePointAt(0)?.toString(16)} of p${who}`
    if (!restored.has(ch)) assert(count <= 1, `typed twice: ${name}`)
    if (!deleted.has(ch)) assert(count === 1, `typed text lost: ${name}`)
    else if (count && !restored.has(ch)) stats.back++
  }
  stats.deleted = deleted.size
  return stats
}

/** @param {Schedule} schedule */
export function failure(schedule) {
  try {
    play(schedule)
    return null
  } catch (error) {
    return /** @type {Error} */ (error)
  }
}

/** A shorter schedule that fails in the same way. @param {Schedule} schedule */
export function shrink(schedule) {
  /** @param {Error | null} error */
  const kind = (error) => error?.message.replace(/p?\d.*/s, "").slice(0, 30)
  const wanted = kind(failure(schedule))
  for (let size = schedule.ops.length >> 1; size >= 1;) {
    let cut = false
    for (let i = 0; i < schedule.ops.length; i += size) {
      const shorter = { ...schedule, ops: [...schedule.ops.slice(0, i), ...schedule.ops.slice(i + size)] }
      if (kind(failure(shorter)) !== wanted) continue
      schedule = shorter
      cut = true
      i -= size
    }
    if (!cut) size = size === 1 ? 0 : size >> 1
  }
  return schedule
}

/** @param {string[]} args */
function main([first, second, third]) {
  if (first === "replay") {
    console.log(play(JSON.parse(fs.readFileSync(second, "utf8"))))
    return
  }
  const from = Number(first ?? 0)
  const to = Number(second ?? 1000)
  /** @type {Record<string, number>} */
  const sum = {}
  let failed = 0
  for (let seed = from; seed < to; seed++) {
    const one = schedule(seed, Number(third ?? 150))
    try {
      for (const [name, value] of Object.entries(play(one))) {
        sum[name] = name === "most" ? Math.max(sum[name] ?? 0, value) : (sum[name] ?? 0) + value
      }
    } catch (error) {
      if (++failed > 2) continue
      const short = shrink(one)
      console.log(`seed ${seed}: ${error}\n${failure(short)?.stack}\n${JSON.stringify(short)}`)
    }
  }
  console.log(JSON.stringify({ schedules: to - from, failed, ...sum }))
  process.exitCode = failed ? 1 : 0
}

if (isMainThread && process.argv[1] === import.meta.filename) main(process.argv.slice(2))
