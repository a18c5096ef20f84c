// Batches of others that were not applied, in the right pane: who, why, where it matched or what comes nearest (D5, D15).

import { diff } from "../built/codemirror.js"
import { writeMoments } from "../console/moments.js"

/** Cards kept in the pane; the count goes on. */
const KEPT = 20

/**
 * @typedef {object} RefusalFrame
 * @property {import("./actors.js").Author} author
 * @property {string} [time]
 * @property {number} [edits] how many the batch had
 * @property {number} revision at which it was refused
 * @property {{code: string, message: string, ordinal?: number, lines?: number[], looked_for?: string,
 *   nearest?: {line: number, text: string, cut: boolean} | null}} error
 */

export class Refusals {
  #count = 0

  /**
   * @param {object} of
   * @param {import("./actors.js").Actors} of.actors
   * @param {import("./editor.js").Editor} of.editor
   */
  constructor({ actors, editor }) {
    this.actors = actors
    this.editor = editor
    this.section = /** @type {HTMLElement} */ (document.getElementById("refused"))
    this.list = /** @type {HTMLElement} */ (document.getElementById("refused-list"))
    this.template = /** @type {HTMLTemplateElement} */ (document.getElementById("refusal-template"))
  }

  /** @param {RefusalFrame} frame */
  add(frame) {
    this.actors.learn(frame.author)
    this.list.prepend(this.#card(frame))
    while (this.list.children.length > KEPT) this.list.lastElementChild?.remove()
    this.#count++
    const count = /** @type {HTMLElement} */ (document.getElementById("refused-count"))
    count.textContent = this.#count > KEPT ? `newest ${KEPT} of ${this.#count}` : String(this.#count)
    this.section.hidden = false
  }

  /** @param {RefusalFrame} frame */
  #card({ author, time, edits, revision, error }) {
    const card = /** @type {DocumentFragment} */ (this.template.content.cloneNode(true))
    /** @param {string} selector */
    const at = (selector) => /** @type {HTMLElement} */ (card.querySelector(selector))
    const moment = /** @type {HTMLTimeElement} */ (at("time"))
    moment.dateTime = time ?? new Date().toISOString()
    writeMoments(card)
    const who = document.createElement("span")
    who.className = `who ${this.actors.classOf(author.id).replace("ag ", "agent ")}`
    who.textContent = this.actors.nameOf(author.id)
    const many = edits ? `${edits} edit${edits === 1 ? "" : "s"}` : "a batch"
    const none = edits && edits > 1 ? ` Edit ${error.ordinal ?? "?"} could not be applied, so none was.` : ""
    at(".said").append(who, ` sent ${many} at revision ${revision}.${none}`)
    at(".reason").textContent = error.message
    this.#near(at(".near"), error)
    this.#buttons(at(".btn-row"), error)
    return card
  }

  /**
   * @param {HTMLElement} place
   * @param {RefusalFrame["error"]} error
   */
  #near(place, { looked_for: wanted, nearest }) {
    if (!wanted || !nearest) return
    place.hidden = false
    const parts = diff(wanted, nearest.text, { scanLimit: 200 })
    place.append(
      term("It looked for"),
      marked(
        wanted,
        parts.map(({ fromA, toA }) => [fromA, toA]),
        "del",
      ),
      term(`Nearest, line ${nearest.line}${nearest.cut ? ", part of it" : ""}`),
      marked(
        nearest.text,
        parts.map(({ fromB, toB }) => [fromB, toB]),
        "ins",
      ),
    )
  }

  /**
   * @param {HTMLElement} row
   * @param {RefusalFrame["error"]} error
   */
  #buttons(row, { nearest, lines, looked_for: wanted }) {
    const places = nearest ? [nearest.line] : [...new Set(lines ?? [])].slice(0, 5)
    for (const line of places) row.append(button(`Go to line ${line}`, "btn", () => this.editor.goToLine(line)))
    if (wanted) row.append(button("Copy its text", "btn btn-quiet", () => navigator.clipboard?.writeText(wanted)))
  }
}

/** @param {string} words */
function term(words) {
  const name = document.createElement("dt")
  name.textContent = words
  return name
}

/**
 * @param {string} text
 * @param {number[][]} ranges
 * @param {"ins" | "del"} tag
 */
function marked(text, ranges, tag) {
  const place = document.createElement("dd")
  const code = document.createElement("code")
  let at = 0
  for (const [from, to] of ranges) {
    code.append(text.slice(at, from))
    const part = document.createElement(tag)
    part.textContent = text.slice(from, to)
    if (from < to) code.append(part)
    at = to
  }
  code.append(text.slice(at))
  place.append(code)
  return place
}

/**
 * @param {string} words
 * @param {string} classes
 * @param {() => void} pressed
 */
function button(words, classes, pressed) {
  const one = document.createElement("button")
  one.type = "button"
  one.className = classes
  one.textContent = words
  one.addEventListener("click", pressed)
  return one
}
