// What agents wrote and nobody here has read yet (D15): hatched until the reader goes there, with the author's name and
// the revision beside it; a flash when it comes.

import { Decoration, EditorView, StateEffect, StateField, WidgetType } from "../built/codemirror.js"
import { remote } from "./remote.js"

/** @typedef {{from: number, to: number, actor: number, revision: number, flash: boolean}} Unread */

/** These were read: every passage that touches the range. */
export const markRead = /** @type {import("../built/codemirror.js").StateEffectType<{from: number, to: number}>} */ (
  StateEffect.define()
)

/** The flash is over. */
export const endFlash = /** @type {import("../built/codemirror.js").StateEffectType<null>} */ (StateEffect.define())

/** Passages kept: an agent that rewrites a document for hours leaves one hatched text, not ten thousand marks. */
const MOST = 500

/** @type {StateField<readonly Unread[]>} */
export const unreadField = StateField.define({
  create: () => /** @type {readonly Unread[]} */ ([]),
  update(value, transaction) {
    if (transaction.docChanged) value = moved(value, transaction.changes)
    const step = transaction.annotation(remote)
    if (step?.event?.author.kind === "agent") value = withStep(value, step)
    for (const effect of transaction.effects) {
      if (effect.is(markRead)) {
        const { from, to } = effect.value
        value = value.filter((passage) => passage.to < from || passage.from > to)
      } else if (effect.is(endFlash)) {
        value = value.map((passage) => ({ ...passage, flash: false }))
      }
    }
    return value
  },
})

/**
 * @param {readonly Unread[]} passages
 * @param {import("../built/codemirror.js").ChangeSet} changes
 */
function moved(passages, changes) {
  return passages
    .map((passage) => ({ ...passage, from: changes.mapPos(passage.from, 1), to: changes.mapPos(passage.to, -1) }))
    .filter((passage) => passage.from < passage.to)
}

/**
 * @param {readonly Unread[]} passages
 * @param {import("./peer.js").Step} step
 * @returns {readonly Unread[]}
 */
function withStep(passages, { change, event }) {
  if (!event) return passages
  const { author, seq } = event
  const all = [...passages]
  change.iterChangedRanges((_from, _to, from, to) => {
    if (from < to) all.push({ from, to, actor: author.id, revision: seq, flash: true })
  })
  return joined(all.sort((a, b) => a.from - b.from || a.to - b.to))
}

/**
 * Passages of one agent that touch are one.
 * @param {Unread[]} sorted
 */
function joined(sorted) {
  /** @type {Unread[]} */
  const all = []
  for (const passage of sorted) {
    const last = all[all.length - 1]
    if (last && last.actor === passage.actor && passage.from <= last.to) {
      const to = Math.max(last.to, passage.to)
      const flash = last.flash || passage.flash
      all[all.length - 1] = { ...last, to, flash, revision: Math.max(last.revision, passage.revision) }
    } else {
      all.push(passage)
    }
  }
  return all.slice(-MOST)
}

class Pill extends WidgetType {
  /**
   * @param {Unread} passage
   * @param {string} name
   * @param {string} classes
   */
  constructor(passage, name, classes) {
    super()
    this.passage = passage
    this.words = `${name}, r${passage.revision}`
    this.classes = classes
  }
  /** @param {Pill} other */
  eq(other) {
    return this.words === other.words && this.classes === other.classes && this.passage.from === other.passage.from
  }
  /** @param {EditorView} view */
  toDOM(view) {
    const pill = document.createElement("button")
    pill.type = "button"
    pill.className = `un ${this.classes}`
    pill.textContent = this.words
    pill.title = "An agent wrote this. Press to mark it as read."
    pill.addEventListener("mousedown", (event) => event.preventDefault())
    pill.addEventListener("click", () => {
      const from = view.posAtDOM(pill)
      view.dispatch({ effects: markRead.of({ from, to: from }) })
    })
    return pill
  }
  ignoreEvent() {
    return true
  }
}

/**
 * @param {(actor: number | null) => string} classOf
 * @param {(actor: number | null) => string} nameOf
 */
export function unread(classOf, nameOf) {
  return [
    unreadField,
    EditorView.decorations.compute([unreadField], (state) => {
      const passages = state.field(unreadField)
      return Decoration.set(
        passages.flatMap((passage) => {
          const classes = classOf(passage.actor)
          const mark = Decoration.mark({ class: `unread ${classes}${passage.flash ? " flash" : ""}` })
          const pill = Decoration.widget({ widget: new Pill(passage, nameOf(passage.actor), classes), side: 1 })
          // A passage that ends with a line break is signed on its last line, not on the next one.
          const broken = state.doc.sliceString(passage.to - 1, passage.to) === "\n"
          const sign = broken && passage.to - 1 > passage.from ? passage.to - 1 : passage.to
          return [mark.range(passage.from, passage.to), pill.range(sign)]
        }),
        true,
      )
    }),
    // Whoever puts the cursor into a passage has read it.
    EditorView.updateListener.of((update) => {
      if (!update.selectionSet || !update.transactions.some((transaction) => transaction.isUserEvent("select"))) return
      const { from, to } = update.state.selection.main
      const touched = update.state.field(unreadField).some((passage) => passage.to >= from && passage.from <= to)
      if (touched) queueMicrotask(() => update.view.dispatch({ effects: markRead.of({ from, to }) }))
    }),
  ]
}
