/**
 * Changes of a text, pure: rounding to code points, differences, where a recorded batch lands, how typing is quoted.
 * Texts are strings, changes are CodeMirror ChangeSets; offsets are UTF-16 units.
 */
import { ChangeSet, Text, diff } from "../built/codemirror.js"
import { occurrences, walkEdits } from "./applier.js"

/** @typedef {import("./applier.js").Edit} Edit */
/** @typedef {{from: number, to: number, insert: string}} Range */

/** Changed ranges nearer to each other than this are quoted together: two quotes would cover the text between twice. */
const NEAR = 32

/** More ranges than this are quoted as one: each edit searches the whole text, here and on the server (D6). */
const MANY = 100

/** A line is quoted whole up to this far on either side; a file of one line would else be sent with every batch (D12). */
const LINE = 128

/** Gives up on finer differences in very unlike texts, which would take quadratic time (option of `diff`). */
const SCAN_LIMIT = 500

/** What stands for a character that no document can hold. */
const REPLACEMENT = "\ufffd"

/**
 * A text as CodeMirror holds it. Only `\n` parts lines: `\r` is text and survives (D14).
 *
 * @param {string} string
 */
export const toText = (string) => Text.of(string.split("\n"))

/**
 * @param {string} text
 * @param {ChangeSet} changes
 * @returns {string}
 */
export function applyChanges(text, changes) {
  let result = ""
  let at = 0
  changes.iterChanges((from, to, _fromNew, _toNew, inserted) => {
    result += text.slice(at, from) + inserted.toString()
    at = to
  })
  return result + text.slice(at)
}

/**
 * The same change in whole code points. Half a surrogate pair must never be rebased alone, so rounding when a batch is
 * quoted would be too late (D12).
 *
 * @param {string} text
 * @param {ChangeSet} changes
 * @returns {ChangeSet}
 */
export function rounded(text, changes) {
  /** @type {Range[]} */
  const ranges = []
  changes.iterChanges((from, to, _fromNew, _toNew, inserted) => {
    const start = roundDown(text, from)
    const end = roundUp(text, to)
    const tail = inserted.toString() + text.slice(to, end)
    const last = ranges.at(-1)
    if (last && start < last.to) {
      // The halves of one pair were changed apart: the second half, which `last` kept, is replaced after all.
      last.insert = last.insert.slice(0, last.insert.length - (last.to - from)) + tail
      last.to = end
    } else {
      ranges.push({ from: start, to: end, insert: text.slice(start, from) + tail })
    }
  })
  return toChanges(ranges, text.length)
}

/**
 * A correction of what `changes` inserted: U+0000 and unpaired surrogates become U+FFFD (D12). Null when nothing is wrong.
 * It is a change of the text after `changes`, and keeps every offset.
 *
 * @param {ChangeSet} changes rounded
 * @returns {ChangeSet | null}
 */
export function correction(changes) {
  /** @type {Range[]} */
  const ranges = []
  changes.iterChanges((_from, _to, fromNew, _toNew, inserted) => {
    const wrong = inserted.toString()
    if (wrong.isWellFormed() && !wrong.includes("\0")) return
    const right = wrong.toWellFormed().replaceAll("\0", REPLACEMENT)
    for (let i = 0; i < wrong.length; i++) {
      if (right[i] !== wrong[i]) ranges.push({ from: fromNew + i, to: fromNew + i + 1, insert: REPLACEMENT })
    }
  })
  return ranges.length ? toChanges(ranges, changes.newLength) : null
}

/**
 * The differences of two texts in whole code points, bounded in time. Finer than trimming the common ends, so that
 * typing inside a passage that somebody rewrote stays where it was (D13).
 *
 * @param {string} from
 * @param {string} to
 * @returns {ChangeSet}
 */
export function differences(from, to) {
  const ranges = diff(from, to, { scanLimit: SCAN_LIMIT }).map((part) => ({
    from: part.fromA,
    to: part.toA,
    insert: to.slice(part.fromB, part.toB),
  }))
  return rounded(from, toChanges(ranges, from.length))
}

/**
 * What a recorded batch does to the text, located by the twin (D13).
 *
 * @param {string} text
 * @param {readonly Edit[]} edits
 * @returns {{changes: ChangeSet, text: string}}
 * @throws {import("./applier.js").EditError} never for a recorded batch on the text it was recorded on
 */
export function located(text, edits) {
  let changes = ChangeSet.empty(text.length)
  for (const { at, edit, before, text: after } of walkEdits(text, edits)) {
    /** @type {Range[]} */
    const ranges = []
    differences(edit.old_string, edit.new_string).iterChanges((from, to, _fromNew, _toNew, inserted) => {
      ranges.push({ from: at + from, to: at + to, insert: inserted.toString() })
    })
    changes = changes.compose(toChanges(ranges, before.length))
    text = after
  }
  return { changes, text }
}

/**
 * The batch that turns the text into what `changes` make of it, and into nothing else (D12). Empty when they make
 * nothing else of it.
 *
 * @param {string} text
 * @param {ChangeSet} changes
 * @returns {Edit[]}
 */
export function quoted(text, changes) {
  const wanted = applyChanges(text, changes)
  if (wanted === text) return []
  // Quotes that weigh more than both texts, as in a megabyte of one letter, are worse than the texts; these are always
  // within the limits of D6, and the whole text occurs once.
  return (
    quotedRanges(text, joinedRanges(text, changes, wanted), text.length + wanted.length) ?? [
      { old_string: text, new_string: wanted },
    ]
  )
}

/**
 * The changed ranges, near ones joined, many made one.
 *
 * @param {string} text
 * @param {ChangeSet} changes
 * @param {string} wanted
 * @returns {Range[]}
 */
function joinedRanges(text, changes, wanted) {
  /** @type {Range[]} */
  const ranges = []
  changes.iterChanges((from, to, _fromNew, _toNew, inserted) => {
    const last = ranges.at(-1)
    if (last && from - last.to < NEAR) {
      last.insert += text.slice(last.to, from) + inserted.toString()
      last.to = to
    } else {
      ranges.push({ from, to, insert: inserted.toString() })
    }
  })
  if (ranges.length <= MANY) return ranges
  const from = ranges[0].from
  const to = ranges[ranges.length - 1].to
  return [{ from, to, insert: wanted.slice(from, wanted.length - (text.length - to)) }]
}

/**
 * One edit a range, each quoting the running text; null once the quotes weigh more than `most` units together.
 *
 * @param {string} text
 * @param {Range[]} ranges
 * @param {number} most
 * @returns {Edit[] | null}
 */
function quotedRanges(text, ranges, most) {
  /** @type {Edit[]} */
  const edits = []
  let shift = 0
  for (const range of ranges) {
    const from = range.from + shift
    const to = range.to + shift
    if (text.slice(from, to) === range.insert) continue
    const { start, end } = quote(text, from, to, most)
    const edit = {
      old_string: text.slice(start, end),
      new_string: text.slice(start, from) + range.insert + text.slice(to, end),
    }
    most -= edit.old_string.length + edit.new_string.length
    if (most < 0) return null
    edits.push(edit)
    text = text.slice(0, from) + range.insert + text.slice(to)
    shift += range.insert.length - (to - from)
  }
  return edits
}

/**
 * The smallest quote around a range that is tried and occurs exactly once, disjoint from the left: its line, with the
 * breaks around it, then doubled until it does. Quoting the breaks makes text that others put at the same place refuse
 * the batch, rather than change sides with it.
 *
 * @param {string} text
 * @param {number} from
 * @param {number} to
 * @param {number} most units after which the search for a smaller quote than the whole text is pointless
 * @returns {{start: number, end: number}}
 */
function quote(text, from, to, most) {
  const before = text.slice(Math.max(0, from - LINE), from).lastIndexOf("\n")
  const after = text.slice(to, to + LINE).indexOf("\n")
  let start = before < 0 ? from - LINE : Math.max(0, from - LINE) + before
  let end = after < 0 ? to + LINE : to + after + 1
  for (;;) {
    start = roundDown(text, start)
    end = roundUp(text, end)
    if (end - start === text.length || end - start > most) return { start: 0, end: text.length }
    if (end > start) {
      const found = occurrences(text, text.slice(start, end), 2)
      if (found.count === 1 && found.first === start) return { start, end }
    }
    const grow = Math.max(end - start, 16)
    start -= grow
    end += grow
  }
}

/**
 * @param {Range[]} ranges
 * @param {number} length
 */
function toChanges(ranges, length) {
  return ChangeSet.of(
    ranges.map(({ from, to, insert }) => ({ from, to, insert: toText(insert) })),
    length,
  )
}

/**
 * The nearest boundary of code points at or before an offset, and within the text.
 *
 * @param {string} text
 * @param {number} at
 */
export function roundDown(text, at) {
  if (at <= 0) return 0
  return splitsPair(text, at) ? at - 1 : Math.min(at, text.length)
}

/**
 * @param {string} text
 * @param {number} at
 */
function roundUp(text, at) {
  if (at >= text.length) return text.length
  return splitsPair(text, at) ? at + 1 : Math.max(at, 0)
}

/**
 * @param {string} text
 * @param {number} at
 */
function splitsPair(text, at) {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800
}
