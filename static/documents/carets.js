// Where the others are: a caret with a name, and what they have selected. Places move with the text.

import { Decoration, EditorView, StateEffect, StateField, WidgetType } from "../built/codemirror.js"

/**
 * @typedef {{connection: string, actor: number, name: string, classes: string, anchor: number, head: number}} Caret
 */

/** One person came, moved, or left (`null`). */
export const setCaret =
  /** @type {import("../built/codemirror.js").StateEffectType<{connection: string, caret: Caret | null}>} */ (
    StateEffect.define()
  )

/** Nobody is known any more. */
export const clearCarets = /** @type {import("../built/codemirror.js").StateEffectType<null>} */ (StateEffect.define())

/** @type {StateField<ReadonlyMap<string, Caret>>} */
export const caretsField = StateField.define({
  create: () => /** @type {ReadonlyMap<string, Caret>} */ (new Map()),
  update(carets, transaction) {
    const { changes, effects } = transaction
    const told = effects.some((effect) => effect.is(setCaret) || effect.is(clearCarets))
    if (!told && (changes.empty || !carets.size)) return carets
    const next = new Map(carets)
    for (const [connection, caret] of carets) {
      next.set(connection, { ...caret, anchor: changes.mapPos(caret.anchor, 1), head: changes.mapPos(caret.head, 1) })
    }
    for (const effect of effects) {
      if (effect.is(clearCarets)) next.clear()
      if (!effect.is(setCaret)) continue
      const { connection, caret } = effect.value
      if (caret) next.set(connection, caret)
      else next.delete(connection)
    }
    return next
  },
  provide: (field) => EditorView.decorations.from(field, (carets) => draw([...carets.values()])),
})

/** @param {Caret[]} carets */
function draw(carets) {
  const marks = []
  for (const { anchor, head, classes, name } of carets) {
    const from = Math.min(anchor, head)
    const to = Math.max(anchor, head)
    if (from < to) marks.push(Decoration.mark({ class: `sel ${classes}` }).range(from, to))
    marks.push(Decoration.widget({ widget: new CaretMark(name, classes), side: head < anchor ? -1 : 1 }).range(head))
  }
  return Decoration.set(marks, true)
}

class CaretMark extends WidgetType {
  /**
   * @param {string} name
   * @param {string} classes
   */
  constructor(name, classes) {
    super()
    this.name = name
    this.classes = classes
  }
  /** @param {CaretMark} other */
  eq(other) {
    return this.name === other.name && this.classes === other.classes
  }
  toDOM() {
    const mark = document.createElement("span")
    mark.className = `rc ${this.classes}`
    mark.setAttribute("aria-hidden", "true")
    const label = document.createElement("i")
    label.dataset.name = this.name // shown by the stylesheet: it is no part of the text
    mark.append(label)
    return mark
  }
  ignoreEvent() {
    return true
  }
}
