/**
 * The twin of `documents/edits.py`: replace-exactly-once, in atomic batches (D1, D2). Pure: no DOM, no imports.
 * Both pass the same vectors (D3) and give the same codes, facts and sentences. Offsets are UTF-16 units here.
 *
 * @typedef {{old_string: string, new_string: string}} Edit
 * @typedef {"empty_old_string" | "invalid_text" | "absent" | "ambiguous"} EditErrorCode
 * @typedef {{code: EditErrorCode, ordinal: number, field?: string, matches?: number, preview?: string}} EditFacts
 */

/** Units of the needle that `indexOf` looks for: it is quadratic for long ones, and fast for short ones. */
const PROBE = 64

/** Places where only the probe matched, before Knuth-Morris-Pratt takes over: each costs a compare of the needle. */
const TRIES = 16

/** Code points of `old_string` that a refusal quotes. */
const PREVIEW = 80

/** A batch was refused, and nothing of it was applied. The code and the facts of D2 are properties. */
export class EditError extends Error {
  /**
   * @param {string} message
   * @param {EditFacts} facts
   */
  constructor(message, facts) {
    super(message)
    this.name = "EditError"
    this.facts = facts
    this.code = facts.code
    this.ordinal = facts.ordinal
    this.field = facts.field
    this.matches = facts.matches
    this.preview = facts.preview
  }
}

/**
 * The text after the whole batch, in linear time for each edit.
 *
 * @param {string} text
 * @param {readonly Edit[]} edits
 * @returns {string}
 * @throws {EditError} for the first edit that cannot apply
 */
export function applyEdits(text, edits) {
  for (const step of walkEdits(text, edits)) text = step.text
  return text
}

/**
 * The batch edit by edit: where each matched in the text before it, and the text after it.
 *
 * @param {string} text
 * @param {readonly Edit[]} edits
 * @returns {Generator<{at: number, edit: Edit, before: string, text: string}, void>}
 * @throws {EditError} as `applyEdits` does
 */
export function* walkEdits(text, edits) {
  let ordinal = 0
  for (const edit of edits) {
    const before = text
    const at = findPlace(text, edit, ++ordinal)
    text = text.slice(0, at) + edit.new_string + text.slice(at + edit.old_string.length)
    yield { at, edit, before, text }
  }
}

/**
 * @param {string} text
 * @param {Edit} edit
 * @param {number} ordinal
 * @returns {number}
 */
function findPlace(text, edit, ordinal) {
  const old = edit.old_string
  if (old === "") {
    throw new EditError(
      `Edit ${ordinal}: old_string is empty, so it names no place in the document. Quote the exact text to replace.`,
      { code: "empty_old_string", ordinal },
    )
  }
  for (const field of /** @type {const} */ (["old_string", "new_string"])) {
    if (isValidText(edit[field])) continue
    throw new EditError(
      `Edit ${ordinal}: ${field} holds an unpaired surrogate or U+0000, which no document can hold. Send valid text.`,
      { code: "invalid_text", ordinal, field },
    )
  }
  const { first, count } = occurrences(text, old)
  if (count === 1) return first
  const preview = [...old.slice(0, 2 * PREVIEW)].slice(0, PREVIEW).join("")
  const quoted = JSON.stringify(preview)
  if (count === 0) {
    throw new EditError(
      `Edit ${ordinal}: old_string does not occur in the document (searched for ${quoted}).` +
        " It may have changed since you read it: read it again and quote the exact text.",
      { code: "absent", ordinal, preview },
    )
  }
  throw new EditError(
    `Edit ${ordinal}: old_string occurs ${count} times (searched for ${quoted}),` +
      " so it names no single place. Quote more of the text around it.",
    { code: "ambiguous", ordinal, matches: count, preview },
  )
}

/**
 * Whether a document can hold it: whole code points, and no U+0000.
 *
 * @param {string} string
 */
export function isValidText(string) {
  return string.isWellFormed() && !string.includes("\0")
}

/**
 * Where `needle` begins first (-1: nowhere), and how often it occurs, disjoint and from the left, counted up to `limit`.
 *
 * @param {string} text
 * @param {string} needle not empty
 * @param {number} [limit]
 * @returns {{first: number, count: number}}
 */
export function occurrences(text, needle, limit = Infinity) {
  const probe = needle.length > PROBE ? needle.slice(0, PROBE) : needle
  let first = -1
  let count = 0
  let from = 0
  for (let tries = 0; tries <= TRIES;) {
    const at = text.indexOf(probe, from)
    if (at < 0) return { first, count }
    if (probe === needle || text.startsWith(needle, at)) {
      if (count++ === 0) first = at
      if (count >= limit) return { first, count }
      from = at + needle.length
    } else {
      tries++
      from = at + 1
    }
  }
  return occurrencesFrom(text, needle, from, { first, count }, limit)
}

/**
 * Goes on counting from `from` by Knuth-Morris-Pratt, which reads each unit once whatever the text is.
 *
 * @param {string} text
 * @param {string} needle
 * @param {number} from
 * @param {{first: number, count: number}} found
 * @param {number} limit
 */
function occurrencesFrom(text, needle, from, { first, count }, limit) {
  const length = needle.length
  const codes = new Uint16Array(length)
  const border = new Int32Array(length)
  for (let i = 0; i < length; i++) codes[i] = needle.charCodeAt(i)
  for (let i = 1, k = 0; i < length; i++) {
    while (k > 0 && codes[i] !== codes[k]) k = border[k - 1]
    border[i] = codes[i] === codes[k] ? ++k : k
  }
  for (let i = from, k = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    while (k > 0 && code !== codes[k]) k = border[k - 1]
    if (code === codes[k] && ++k === length) {
      if (count++ === 0) first = i - length + 1
      if (count >= limit) break
      k = 0 // disjoint: the next one begins after this one
    }
  }
  return { first, count }
}
