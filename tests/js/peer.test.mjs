// What the simulator does not show: refusals that end or postpone the sending, and what the host asks a peer (D12, D13).
import assert from "node:assert/strict"
import { test } from "node:test"
import { ChangeSet } from "../../static/built/codemirror.js"
import { toText } from "../../static/documents/changes.js"
import * as peers from "../../static/documents/peer.js"

const ME = 7
const start = (text = "one\ntwo\n") => peers.createPeer({ actor: ME, name: "tab", text, revision: 4 })

/** @param {peers.Peer} peer @param {number} at @param {string} insert */
function typed(peer, at, insert, to = at) {
  const length = peers.viewText(peer).length
  return peers.localChange(peer, ChangeSet.of({ from: at, to, insert: toText(insert) }, length))
}

/** A peer with one batch on its way. */
function sending() {
  const { peer, batch } = peers.nextBatch(typed(start(), 3, "!").peer)
  assert.ok(batch)
  return { peer, batch }
}

/** @param {string} code */
const refusal = (code, revision = 4) =>
  /** @type {const} */ ({ type: "refused", request_id: "tab-0", revision, error: { code, message: code } })

test("typing is sent once, and saved when its event came", () => {
  const { peer, batch } = sending()
  assert.deepEqual(batch, { request_id: "tab-0", edits: [{ old_string: "one\n", new_string: "one!\n" }] })
  assert.equal(peers.isSaved(peer), false)
  assert.equal(peers.countUnsaved(peer), 1)
  assert.equal(peers.nextBatch(peer).batch, null)
  const accepted = peers.receive(peer, { type: "accepted", request_id: "tab-0", revision: 5 })
  const event = { seq: 5, author: { id: ME }, request_id: "tab-0", edits: batch.edits }
  const done = peers.receive(accepted.peer, { type: "events", events: [event] })
  assert.deepEqual(done.steps, [])
  assert.equal(peers.isSaved(done.peer), true)
  assert.deepEqual(done.peer.confirmed, { text: "one!\ntwo\n", revision: 5 })
})

test("the event alone is enough: answers may be lost", () => {
  const { peer, batch } = sending()
  const event = { seq: 5, author: { id: ME }, request_id: "tab-0", edits: batch.edits }
  assert.equal(peers.isSaved(peers.receive(peer, { type: "events", events: [event] }).peer), true)
})

test("another's batch with the same id is not taken for the own one", () => {
  const { peer } = sending()
  const event = { seq: 5, author: { id: 8 }, request_id: "tab-0", edits: [{ old_string: "two", new_string: "2" }] }
  const after = peers.receive(peer, { type: "events", events: [event] })
  assert.equal(after.steps[0].event, event)
  assert.equal(peers.isSaved(after.peer), false)
  assert.equal(peers.viewText(after.peer), "one!\n2\n")
})

test("a refusal that no fresh quote cures stops the sending and keeps the text", () => {
  const stuck = peers.receive(sending().peer, refusal("document_too_long")).peer
  assert.equal(stuck.stuck?.code, "document_too_long")
  assert.equal(peers.nextBatch(typed(stuck, 0, "x").peer).batch, null)
  assert.equal(peers.resume(stuck).batch, null)
  assert.equal(peers.viewText(stuck), "one!\ntwo\n")
})

test("a refused change is quoted again once the refusal's revision has been read", () => {
  const refused = peers.receive(sending().peer, refusal("absent", 5)).peer
  assert.equal(peers.nextBatch(refused).batch, null)
  const event = { seq: 5, author: { id: 8 }, request_id: "x", edits: [{ old_string: "one", new_string: "1" }] }
  const read = peers.receive(refused, { type: "events", events: [event] }).peer
  const later = typed(read, 0, "later ").peer
  assert.deepEqual(peers.nextBatch(later).batch, {
    request_id: "tab-0",
    edits: [{ old_string: "1\n", new_string: "1!\n" }],
  })
})

test("not now: the same batch goes out again when the host says so", () => {
  const { peer, batch } = sending()
  const postponed = peers.receive(peer, { ...refusal("unavailable"), revision: undefined }).peer
  assert.equal(peers.nextBatch(postponed).batch, null)
  assert.deepEqual(peers.sendAgain(postponed).batch, batch)
  assert.equal(peers.sendAgain(peers.sendAgain(postponed).peer).batch, null)
  assert.deepEqual(peers.resume(postponed).batch, batch)
})

test("a connection that began again sends the batch in flight first", () => {
  const { peer, batch } = sending()
  const resumed = peers.resume(peer)
  assert.deepEqual([resumed.batch, resumed.after], [batch, 4])
})

test("a missing event is a gap, and what came before it is shown", () => {
  /** @param {number} seq @param {string} from @param {string} to */
  const event = (seq, from, to) => ({
    seq,
    author: { id: 8 },
    request_id: null,
    edits: [{ old_string: from, new_string: to }],
  })
  const out = peers.receive(start(), { type: "events", events: [event(5, "one", "1"), event(7, "two", "2")] })
  assert.equal(out.peer.gap, true)
  assert.equal(out.peer.confirmed.revision, 5)
  assert.equal(peers.viewText(out.peer), "1\ntwo\n")
})

test("an event that came twice is applied once", () => {
  const event = { seq: 5, author: { id: 8 }, request_id: null, edits: [{ old_string: "one", new_string: "one one" }] }
  const out = peers.receive(start(), { type: "events", events: [event, event] })
  assert.equal(peers.viewText(out.peer), "one one\ntwo\n")
})

test("an emptied view gets a line break, and half a pair a replacement", () => {
  const emptied = typed(start("abc"), 0, "", 3)
  assert.equal(peers.viewText(emptied.peer), "\n")
  assert.equal(emptied.steps.length, 1)
  const halved = typed(start("a😀"), 2, "", 3)
  assert.equal(peers.viewText(halved.peer), "a\ufffd")
})
