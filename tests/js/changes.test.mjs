// Rounding, differences, and how typing is quoted (D12, D13).
import assert from "node:assert/strict"
import { test } from "node:test"
import { ChangeSet } from "../../static/built/codemirror.js"
import { applyEdits } from "../../static/documents/applier.js"
import {
  applyChanges,
  correction,
  differences,
  located,
  quoted,
  rounded,
  toText,
} from "../../static/documents/changes.js"

const MI = 1024 * 1024

/**
 * @param {string} text
 * @param {{from: number, to?: number, insert?: string}[]} ranges
 */
const changes = (text, ranges) =>
  ChangeSet.of(
    ranges.map(({ from, to = from, insert = "" }) => ({ from, to, insert: toText(insert) })),
    text.length,
  )

/**
 * The batch, held to what it must always be: exactly the wanted text, and no heavier than both texts.
 *
 * @param {string} text
 * @param {{from: number, to?: number, insert?: string}[]} ranges
 */
function batch(text, ranges) {
  const change = changes(text, ranges)
  const edits = quoted(text, change)
  const wanted = applyChanges(text, change)
  assert.equal(applyEdits(text, edits), wanted)
  const weight = edits.reduce((sum, edit) => sum + edit.old_string.length + edit.new_string.length, 0)
  assert.ok(weight <= text.length + wanted.length, `${weight} units for a text of ${text.length}`)
  assert.ok(edits.length <= 1000)
  return edits
}

test("a change is quoted with its line and the breaks around it", () => {
  assert.deepEqual(batch("one\ntwo\nthree\n", [{ from: 5, to: 6, insert: "oo" }]), [
    { old_string: "\ntwo\n", new_string: "\ntooo\n" },
  ])
})

test("a long line is quoted at most 128 units on either side", () => {
  const text = Array.from({ length: 2000 }, (_, i) => `w${i}`).join(" ")
  const [edit] = batch(text, [{ from: 5000, insert: "x" }])
  assert.equal(edit.old_string.length, 256)
})

test("a quote that occurs twice is doubled until it does not", () => {
  const text = "same\n".repeat(8)
  const [edit] = batch(text, [{ from: 20, insert: "!" }])
  assert.ok(edit.old_string.length > 10)
})

test("near ranges are joined, and many become one", () => {
  const text = Array.from({ length: 300 }, (_, i) => `line ${i} with enough words to be apart\n`).join("")
  const line = text.indexOf("line 1 ")
  assert.equal(
    batch(text, [
      { from: line, insert: "x" },
      { from: line + 20, insert: "y" },
    ]).length,
    1,
  )
  /** @param {number} count */
  const everyLine = (count) =>
    Array.from({ length: count }, (_, i) => ({ from: text.indexOf(`line ${i} `), insert: "x" }))
  assert.equal(batch(text, everyLine(50)).length, 50)
  assert.equal(batch(text, everyLine(300)).length, 1)
})

test("what changes nothing is no batch", () => {
  assert.deepEqual(batch("abc", [{ from: 1, to: 2, insert: "b" }]), [])
  assert.deepEqual(batch("abc", []), [])
})

test("no text makes a batch heavier than both texts, nor slow to quote", () => {
  for (const text of ["a".repeat(2 * MI), "ab".repeat(MI), "\n".repeat(2 * MI), "x = 1\n".repeat(340_000)]) {
    const ranges = Array.from({ length: 100 }, (_, i) => ({ from: 1000 + i * 20_000, insert: "c" }))
    const began = performance.now()
    batch(text, ranges)
    assert.ok(performance.now() - began < 10_000, "quoting took ten seconds")
  }
})

test("a pasted megabyte and a wiped text are legal batches", () => {
  const paste = "0123456789abcdef".repeat(65_536)
  assert.equal(batch("one\ntwo\n", [{ from: 4, insert: paste }]).length, 1)
  assert.equal(batch(paste, [{ from: 0, to: paste.length, insert: "\n" }]).length, 1)
})

test("half a pair is never changed alone", () => {
  const text = "a😀b"
  const whole = rounded(text, changes(text, [{ from: 2, to: 3, insert: "\ude01" }]))
  assert.equal(applyChanges(text, whole), "a😁b")
  /** @type {[number, number, string][]} */
  const parts = []
  whole.iterChanges((from, to, _from, _to, inserted) => parts.push([from, to, inserted.toString()]))
  assert.deepEqual(parts, [[1, 3, "😁"]])
})

test("both halves of one pair changed apart are one change", () => {
  const text = "😀"
  const change = changes(text, [
    { from: 0, insert: "x" },
    { from: 1, insert: "y" },
    { from: 2, insert: "z" },
  ])
  assert.equal(applyChanges(text, rounded(text, change)), applyChanges(text, change))
})

test("characters that no document can hold are replaced where they stand", () => {
  const text = "ab"
  const change = changes(text, [{ from: 1, insert: "x\0\ud83dy" }])
  const fix = correction(change)
  assert.ok(fix)
  assert.equal(applyChanges(applyChanges(text, change), fix), "ax\ufffd\ufffdyb")
  assert.equal(correction(changes(text, [{ from: 1, insert: "😀\r\n" }])), null)
})

test("differences are finer than the common ends, and whole code points", () => {
  const from = "The first part. The unchanged middle of it. The last part 😀."
  const to = "The 1st part. The unchanged middle of it. The final part 😁."
  const change = differences(from, to)
  assert.equal(applyChanges(from, change), to)
  assert.equal(change.mapPos(from.indexOf("middle")), to.indexOf("middle"))
})

test("a recorded batch is located edit by edit", () => {
  const text = "one\ntwo\nthree\n"
  const edits = [
    { old_string: "one\n", new_string: "" },
    { old_string: "two", new_string: "too" },
  ]
  const found = located(text, edits)
  assert.equal(found.text, "too\nthree\n")
  assert.equal(applyChanges(text, found.changes), found.text)
  assert.equal(found.changes.mapPos(text.indexOf("three")), 4)
})

test("carriage returns are text", () => {
  const text = "a\r\nb\r\n"
  assert.equal(applyChanges(text, changes(text, [{ from: 1, insert: "\r" }])), "a\r\r\nb\r\n")
  assert.equal(toText(text).lines, 3)
})
