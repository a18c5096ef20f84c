// The pure parts around the editor: places, authors, differences by lines (D14, D15, D17).
import assert from "node:assert/strict"
import { test } from "node:test"
import { ChangeSet } from "../../static/built/codemirror.js"
import { hueOf } from "../../static/documents/actors.js"
import { foldRuns, fromCodePoints, runsBetween, runsOfView, shares } from "../../static/documents/authorship.js"
import { toText } from "../../static/documents/changes.js"
import { MAX_LENGTH, countCodePoints, isTooLong } from "../../static/documents/limits.js"
import { diffLines } from "../../static/documents/linediff.js"
import { LONGEST_PARAGRAPH, hasLongParagraph } from "../../static/documents/markdown.js"
import * as peers from "../../static/documents/peer.js"
import { fromRevision, toConfirmed } from "../../static/documents/positions.js"

const ME = 1
/** @param {string} text */
const start = (text) => peers.createPeer({ actor: ME, name: "t", text, revision: 3 })
/** @param {peers.Peer} peer @param {number} from @param {number} to @param {string} insert */
const type = (peer, from, to, insert) =>
  peers.localChange(peer, ChangeSet.of({ from, to, insert: toText(insert) }, peers.viewText(peer).length)).peer
/** @param {peers.Peer} peer @param {number} seq @param {string} old_string @param {string} new_string */
const told = (peer, seq, old_string, new_string, id = 2) =>
  peers.receive(peer, { type: "events", events: [{ seq, author: { id }, edits: [{ old_string, new_string }] }] }).peer

test("a place of an older revision is found in the view", () => {
  let peer = told(start("one two three"), 4, "one", "zero one")
  peer = type(peer, 0, 0, ">> ")
  assert.equal(fromRevision(peer, 4, 3), 3 + 5 + 4, "the t of two")
  assert.equal(fromRevision(peer, 9, 4), 3 + 9)
  assert.equal(fromRevision(peer, 0, 5), null, "not there yet")
  assert.equal(fromRevision(peer, 0, 2), null, "forgotten")
})

test("a place of the view is told as one of the confirmed text", () => {
  let peer = type(start("one two"), 3, 3, "!!!")
  assert.equal(toConfirmed(peer, 7), 4)
  assert.equal(toConfirmed(peer, 5), 3, "inside what is not saved")
  peer = peers.nextBatch(peer).peer
  peer = type(peer, 0, 0, "__")
  assert.equal(toConfirmed(peer, 9), 4)
})

test("code points become units, and what they do not cover has no author", () => {
  assert.deepEqual(
    fromCodePoints("a😀b😀c", [
      [1, 2],
      [2, 2],
    ]),
    [
      { actor: 1, length: 3 },
      { actor: 2, length: 3 },
      { actor: null, length: 1 },
    ],
  )
})

test("a change is its author's, around it everyone keeps theirs", () => {
  const runs = [
    { actor: 1, length: 6 },
    { actor: 2, length: 4 },
  ]
  const changes = ChangeSet.of(
    [
      { from: 2, to: 4, insert: "XYZ" },
      { from: 8, insert: "!" },
    ],
    10,
  )
  const folded = foldRuns(runs, changes, 3)
  assert.deepEqual(folded, [
    { actor: 1, length: 2 },
    { actor: 3, length: 3 },
    { actor: 1, length: 2 },
    { actor: 2, length: 2 },
    { actor: 3, length: 1 },
    { actor: 2, length: 2 },
  ])
  assert.deepEqual(foldRuns(runs, ChangeSet.of({ from: 5, to: 7 }, 10), 3), [
    { actor: 1, length: 5 },
    { actor: 2, length: 3 },
  ])
  assert.deepEqual(runsBetween(folded, 4, 6), [
    { actor: 3, from: 4, to: 5 },
    { actor: 1, from: 5, to: 6 },
  ])
  assert.deepEqual(shares([...folded, { actor: 2, length: 8 }])[0], { actor: 2, share: 0.6 })
})

test("the server's account is brought to what is seen now", () => {
  let peer = told(start("one two"), 4, "two", "2")
  peer = type(peer, 0, 0, "me ")
  assert.deepEqual(runsOfView(peer, 3, [{ actor: 7, length: 7 }]), [
    { actor: 1, length: 3 },
    { actor: 7, length: 4 },
    { actor: 2, length: 1 },
  ])
  assert.equal(runsOfView(peer, 2, []), null)
})

test("lines that changed, with what is around them and what in them", () => {
  const old = Array.from({ length: 20 }, (_, i) => `line ${i}`)
  const now = [...old]
  now[9] = "line nine"
  now.push("more")
  const rows = diffLines(old.join("\n"), now.join("\n"))
  assert.deepEqual(
    rows.map((row) => (row.kind === "skip" ? row.lines : `${row.kind} ${row.old}/${row.now}`)),
    [
      6,
      "same 7/7",
      "same 8/8",
      "same 9/9",
      "del 10/null",
      "add null/10",
      "same 11/11",
      "same 12/12",
      "same 13/13",
      4,
      "same 18/18",
      "same 19/19",
      "same 20/20",
      "add null/21",
    ],
  )
  const added = rows[5]
  assert.ok(added.kind === "add")
  assert.deepEqual(added.pieces, [
    { text: "line ", changed: false },
    { text: "nine", changed: true },
  ])
})

test("equal texts have no difference, and a difference is bounded in time", () => {
  assert.deepEqual(diffLines("a\nb", "a\nb"), [{ kind: "skip", lines: 2 }])
  const one = Array.from({ length: 100_000 }, (_, i) => `a${i}`).join("\n")
  const other = Array.from({ length: 100_000 }, (_, i) => `b${i * 7}`).join("\n")
  const began = performance.now()
  assert.equal(diffLines(one, other).length, 200_000)
  assert.ok(performance.now() - began < 10_000)
})

test("the limit counts code points, not units", () => {
  assert.equal(countCodePoints(toText("a😀\nb")), 4)
  assert.equal(isTooLong(toText("😀".repeat(MAX_LENGTH))), false)
  assert.equal(isTooLong(toText("a" + "😀".repeat(MAX_LENGTH))), true)
})

test("a paragraph too long to parse with every key is seen", () => {
  const line = "x".repeat(99) + "\n"
  const lines = Math.ceil(LONGEST_PARAGRAPH / 100)
  assert.equal(hasLongParagraph(toText(line.repeat(lines - 1))), false)
  assert.equal(hasLongParagraph(toText(line.repeat(lines + 1))), true)
  assert.equal(hasLongParagraph(toText((line.repeat(50) + "\n").repeat(100))), false)
})

test("colours are those of the server's pages", () => {
  assert.deepEqual([hueOf(null), hueOf(1), hueOf(2), hueOf(12)], [0, 6, 11, 1])
})
