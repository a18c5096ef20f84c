// What a person may do to the text, decided before it is shown: the peer would correct it too, but only afterwards.

import { EditorState, StateEffect } from "../built/codemirror.js"
import { isValidText } from "./applier.js"
import { correction, rounded, toText } from "./changes.js"
import { MAX_LENGTH, isTooLong } from "./limits.js"
import { remote } from "./remote.js"

/** What is said when an input was not taken. */
export const inputRefused = /** @type {import("../built/codemirror.js").StateEffectType<string>} */ (
  StateEffect.define()
)

/**
 * Replaces characters that no document can hold, gives an emptied text a line break, and refuses what would make it
 * longer than a document may be (D6, D12).
 */
export const inputRules = EditorState.transactionFilter.of((transaction) => {
  if (!transaction.docChanged || transaction.annotation(remote)) return transaction
  const { newDoc, startState } = transaction
  if (isTooLong(newDoc) && newDoc.length > startState.doc.length) {
    const words =
      `This would make the document longer than ${MAX_LENGTH.toLocaleString("en-US")} characters, which is the most it` +
      " may have. Nothing was changed: shorten it first, or begin another document."
    return { effects: inputRefused.of(words) }
  }
  const corrected = needsCorrection(transaction)
    ? correction(rounded(startState.doc.toString(), transaction.changes))
    : null
  if (corrected) return [transaction, { changes: corrected, sequential: true }]
  if (newDoc.length === 0) return [transaction, { changes: { from: 0, insert: toText("\n") }, sequential: true }]
  return transaction
})

/**
 * Whether the change may leave something that no document can hold: it is looked at closely only then, since that reads
 * the whole text.
 * @param {import("../built/codemirror.js").Transaction} transaction
 */
function needsCorrection({ changes, startState: { doc } }) {
  let needs = false
  changes.iterChanges((from, to, _fromNew, _toNew, inserted) => {
    const edges = doc.sliceString(Math.max(0, from - 1), from + 1) + "," + doc.sliceString(Math.max(0, to - 1), to + 1)
    needs ||= /[\ud800-\udfff]/.test(edges) || !isValidText(inserted.toString())
  })
  return needs
}
