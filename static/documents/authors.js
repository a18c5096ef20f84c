// The author of each range, in the editor (D15): a stripe beside each line for whoever wrote most of it, and a line under
// what somebody else wrote in it. People solid, agents hatched.

import {
  Decoration,
  GutterMarker,
  RangeSetBuilder,
  StateEffect,
  StateField,
  ViewPlugin,
  gutter,
} from "../built/codemirror.js"
import { foldRuns, runsBetween } from "./authorship.js"
import { remote } from "./remote.js"

/** @typedef {import("./authorship.js").Run} Run */
/** @typedef {import("../built/codemirror.js").EditorState} EditorState */

/** The server's account, brought to the view. */
export const setRuns = /** @type {import("../built/codemirror.js").StateEffectType<readonly Run[]>} */ (
  StateEffect.define()
)

/**
 * @param {number} me whose typing the local changes are
 * @param {(actor: number | null) => string} classOf
 */
export function authors(me, classOf) {
  /** @type {StateField<readonly Run[]>} */
  const runs = StateField.define({
    create: (state) => /** @type {readonly Run[]} */ ([{ actor: null, length: state.doc.length }]),
    update(value, transaction) {
      if (transaction.docChanged) {
        const step = transaction.annotation(remote)
        value = foldRuns(value, transaction.changes, step ? (step.event?.author.id ?? null) : me)
      }
      for (const effect of transaction.effects) if (effect.is(setRuns)) value = effect.value
      return value
    },
  })
  return { runs, extension: [runs, stripes(runs, classOf), underlines(runs, classOf)] }
}

class Stripe extends GutterMarker {
  /** @param {string} name */
  constructor(name) {
    super()
    this.elementClass = name
  }
  /** @param {Stripe} other */
  eq(other) {
    return this.elementClass === other.elementClass
  }
}

/**
 * @param {StateField<readonly Run[]>} runs
 * @param {(actor: number | null) => string} classOf
 */
function stripes(runs, classOf) {
  return gutter({
    class: "authors",
    lineMarker: (view, line) => new Stripe(classOf(lineAuthor(view.state.field(runs), line.from, line.to))),
    lineMarkerChange: (update) => update.docChanged || update.startState.field(runs) !== update.state.field(runs),
  })
}

/**
 * Who wrote most of a line; of an empty one, who wrote its break.
 * @param {readonly Run[]} runs
 * @param {number} from
 * @param {number} to
 */
export function lineAuthor(runs, from, to) {
  /** @type {Map<number | null, number>} */
  const lengths = new Map()
  for (const part of runsBetween(runs, from, Math.max(to, from + 1))) {
    lengths.set(part.actor, (lengths.get(part.actor) ?? 0) + part.to - part.from)
  }
  let most = 0
  /** @type {number | null} */
  let author = null
  for (const [actor, length] of lengths) {
    if (length > most) {
      most = length
      author = actor
    }
  }
  return author
}

/**
 * @param {StateField<readonly Run[]>} runs
 * @param {(actor: number | null) => string} classOf
 */
function underlines(runs, classOf) {
  /** @param {import("../built/codemirror.js").EditorView} view */
  const draw = (view) => {
    const value = view.state.field(runs)
    /** @type {RangeSetBuilder<Decoration>} */
    const builder = new RangeSetBuilder()
    for (const visible of view.visibleRanges) {
      for (let at = visible.from; at <= visible.to;) {
        const line = view.state.doc.lineAt(at)
        const author = lineAuthor(value, line.from, line.to)
        for (const part of runsBetween(value, line.from, line.to)) {
          if (part.actor === author || part.actor === null) continue
          builder.add(part.from, part.to, Decoration.mark({ class: `by ${classOf(part.actor)}` }))
        }
        at = line.to + 1
      }
    }
    return builder.finish()
  }
  return ViewPlugin.fromClass(
    class {
      /** @param {import("../built/codemirror.js").EditorView} view */
      constructor(view) {
        this.marks = draw(view)
      }
      /** @param {import("../built/codemirror.js").ViewUpdate} update */
      update(update) {
        const told = update.startState.field(runs) !== update.state.field(runs)
        if (update.docChanged || update.viewportChanged || told) this.marks = draw(update.view)
      }
    },
    { decorations: (plugin) => plugin.marks },
  )
}
