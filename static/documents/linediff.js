// Two texts side by side by lines, as a page shows them. Pure and bounded in time.

import { diff, presentableDiff } from "../built/codemirror.js"

/**
 * @typedef {{text: string, changed: boolean}} Piece part of a line
 * @typedef {{kind: "same" | "del" | "add", old: number | null, now: number | null, pieces: Piece[]}} Row numbers from one
 * @typedef {{kind: "skip", lines: number}} Skip equal lines that are not shown
 */

/** Equal lines shown around a change. */
const AROUND = 3

/** Gives up on finer differences in very unlike texts. */
const SCAN_LIMIT = 2_000

/** Distinct lines that can be told apart: each is one UTF-16 unit outside the surrogates for the diff. */
const MOST_DISTINCT = 0xd800

/** Lines longer than this are shown as wholly changed: inside them a finer diff says little and costs much. */
const LONGEST = 5_000

/**
 * @param {string} old
 * @param {string} now
 * @returns {(Row | Skip)[]}
 */
export function diffLines(old, now) {
  const a = old.split("\n")
  const b = now.split("\n")
  /** @type {(Row | Skip)[]} */
  const rows = []
  let atOld = 0
  let atNow = 0
  for (const { fromA, toA, fromB, toB } of changedLines(a, b)) {
    same(rows, a, atOld, atNow, fromA, atOld > 0, true)
    changed(rows, a, b, fromA, toA, fromB, toB)
    atOld = toA
    atNow = toB
  }
  same(rows, a, atOld, atNow, a.length, atOld > 0 || atNow > 0, false)
  return rows
}

/**
 * @param {readonly string[]} a
 * @param {readonly string[]} b
 */
function changedLines(a, b) {
  /** @type {Map<string, number>} */
  const codes = new Map()
  /** @param {readonly string[]} lines */
  const encode = (lines) => {
    const units = new Uint16Array(lines.length)
    lines.forEach((line, i) => {
      let code = codes.get(line)
      if (code === undefined) codes.set(line, (code = codes.size))
      units[i] = code
    })
    return units
  }
  const unitsA = encode(a)
  const unitsB = encode(b)
  if (codes.size > MOST_DISTINCT) return trimmed(a, b)
  return diff(toString(unitsA), toString(unitsB), { scanLimit: SCAN_LIMIT })
}

/** @param {Uint16Array} units */
function toString(units) {
  let string = ""
  for (let i = 0; i < units.length; i += 8192) string += String.fromCharCode(...units.subarray(i, i + 8192))
  return string
}

/**
 * What lies between the common beginning and the common end, as one change.
 * @param {readonly string[]} a
 * @param {readonly string[]} b
 */
function trimmed(a, b) {
  let start = 0
  const least = Math.min(a.length, b.length)
  while (start < least && a[start] === b[start]) start++
  let end = 0
  while (end < least - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  return [{ fromA: start, toA: a.length - end, fromB: start, toB: b.length - end }]
}

/**
 * @param {(Row | Skip)[]} rows
 * @param {readonly string[]} lines
 * @param {number} from
 * @param {number} now where they lie in the new text
 * @param {number} to
 * @param {boolean} after a change comes before them
 * @param {boolean} before a change comes after them
 */
function same(rows, lines, from, now, to, after, before) {
  const head = after ? Math.min(to, from + AROUND) : from
  const tail = before ? Math.max(head, to - AROUND) : to
  /** @param {number} start @param {number} end */
  const show = (start, end) => {
    for (let i = start; i < end; i++) {
      const pieces = [{ text: lines[i], changed: false }]
      rows.push({ kind: "same", old: i + 1, now: now + i - from + 1, pieces })
    }
  }
  show(from, head)
  const skipTo = before ? tail : to
  if (skipTo > head) rows.push({ kind: "skip", lines: skipTo - head })
  if (before) show(tail, to)
}

/**
 * @param {(Row | Skip)[]} rows
 * @param {readonly string[]} a
 * @param {readonly string[]} b
 * @param {number} fromA
 * @param {number} toA
 * @param {number} fromB
 * @param {number} toB
 */
function changed(rows, a, b, fromA, toA, fromB, toB) {
  // Lines that replace as many others are compared one by one; else nothing says which belongs to which.
  const paired = toA - fromA === toB - fromB
  /** @type {Row[]} */
  const added = []
  for (let i = fromB; i < toB; i++) {
    const pieces = [{ text: b[i], changed: false }]
    added.push({ kind: "add", old: null, now: i + 1, pieces })
  }
  for (let i = fromA; i < toA; i++) {
    let pieces = [{ text: a[i], changed: false }]
    if (paired && a[i].length + b[fromB + i - fromA].length < LONGEST) {
      const parts = presentableDiff(a[i], b[fromB + i - fromA], { scanLimit: SCAN_LIMIT })
      pieces = pieced(
        a[i],
        parts.map(({ fromA, toA }) => [fromA, toA]),
      )
      added[i - fromA].pieces = pieced(
        b[fromB + i - fromA],
        parts.map(({ fromB, toB }) => [fromB, toB]),
      )
    }
    rows.push({ kind: "del", old: i + 1, now: null, pieces })
  }
  rows.push(...added)
}

/**
 * @param {string} line
 * @param {number[][]} ranges
 * @returns {Piece[]}
 */
function pieced(line, ranges) {
  /** @type {Piece[]} */
  const pieces = []
  let at = 0
  for (const [from, to] of ranges) {
    if (from > at) pieces.push({ text: line.slice(at, from), changed: false })
    if (to > from) pieces.push({ text: line.slice(from, to), changed: true })
    at = to
  }
  if (at < line.length) pieces.push({ text: line.slice(at), changed: false })
  return pieces
}
