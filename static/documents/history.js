// The history of a document: its text at any revision, the difference to another, who wrote it, and bringing it back.

import { getJson } from "../console/requests.js"
import { diffLines } from "./linediff.js"

/** The slider may run over many revisions: only where it rests is asked for. */
const REST_MS = 120

/** Texts kept: going to and fro asks nothing twice. */
const KEPT = 12

/** Rows of a difference shown at once; more on demand. */
const ROWS = 1_500

/**
 * @param {string} selector
 * @returns {any}
 */
const $ = (selector) => document.querySelector(selector)

export class History {
  /** @type {Map<number, Promise<string>>} */
  #texts = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #rest
  #shown = 0
  #all = false

  /**
   * @param {object} of
   * @param {number} of.document
   * @param {import("./editor.js").Editor} of.editor
   * @param {import("./actors.js").Actors} of.actors
   * @param {(words: string) => void} of.failed
   */
  constructor({ document: id, editor, actors, failed }) {
    this.document = id
    this.editor = editor
    this.actors = actors
    this.failed = failed
    $("#show-history").addEventListener("click", () => this.toggle())
    $("#revision").addEventListener("input", () => this.#moved())
    $("#against").addEventListener("change", () => this.#show())
    $("#restore")?.addEventListener("click", () => this.#restore())
    $("#diff").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") this.toggle(false)
    })
  }

  get isOpen() {
    return !$("#history").hidden
  }

  get revision() {
    return Number($("#revision").value)
  }

  /** @param {boolean} [open] */
  toggle(open = !this.isOpen) {
    $("#history").hidden = !open
    $("#diff").hidden = !open
    $("#show-history").setAttribute("aria-pressed", String(open))
    $("#main").classList.toggle("history", open)
    if (open) this.#moved()
    else this.editor.view.focus()
  }

  /** @param {number} revision */
  openAt(revision) {
    $("#revision").value = String(revision)
    $("#against").value = "before"
    if (this.isOpen) this.#moved()
    else this.toggle(true)
  }

  /** The document grew: the slider reaches as far, and stays at the newest if it was there. */
  grown() {
    const { revision } = this.editor.peer.confirmed
    const slider = $("#revision")
    if (Number(slider.max) === revision) return
    const follows = slider.value === slider.max
    slider.max = String(revision)
    if (follows) slider.value = slider.max
    $("#revision-last").textContent = String(revision)
    if (!this.isOpen) $("#revision-out").textContent = slider.value
    else if ($("#against").value === "now") this.#moved()
  }

  #moved() {
    $("#revision-out").textContent = String(this.revision)
    const restore = $("#restore")
    if (restore) {
      restore.disabled = this.revision === this.editor.peer.confirmed.revision
      $("#restore-revision").textContent = String(this.revision)
    }
    clearTimeout(this.#rest)
    this.#rest = setTimeout(() => this.#show(), REST_MS)
  }

  async #show() {
    const { revision } = this
    const ticket = ++this.#shown
    this.#all = false
    try {
      const [text, other, who] = await Promise.all([
        this.#text(revision),
        this.#other(revision),
        this.#author(revision),
      ])
      if (ticket !== this.#shown) return
      $("#revision-who").replaceChildren(...who)
      this.#draw(revision, text, other)
    } catch (error) {
      if (ticket === this.#shown) this.failed(`Revision ${revision} could not be read. ${sentence(error)}`)
    }
  }

  /**
   * The text of the other side and what it is called; null: no comparison.
   * @param {number} revision
   * @returns {Promise<{revision: number, text: string} | null>}
   */
  async #other(revision) {
    const against = $("#against").value
    if (against === "text") return null
    if (against === "now")
      return { revision: this.editor.peer.confirmed.revision, text: this.editor.peer.confirmed.text }
    const other = against === "first" ? 0 : Math.max(0, revision - 1)
    return { revision: other, text: await this.#text(other) }
  }

  /** @param {number} revision */
  #text(revision) {
    const { confirmed } = this.editor.peer
    if (revision === confirmed.revision) return Promise.resolve(confirmed.text)
    const known = this.#texts.get(revision)
    if (known) return known
    const asked = getJson(`/api/documents/${this.document}?revision=${revision}`).then((answer) => answer.text)
    asked.catch(() => this.#texts.delete(revision))
    this.#texts.set(revision, asked)
    const [oldest] = this.#texts.keys()
    if (this.#texts.size > KEPT) this.#texts.delete(oldest)
    return asked
  }

  /**
   * @param {number} revision
   * @returns {Promise<Node[]>}
   */
  async #author(revision) {
    if (revision === 0) return [document.createTextNode("as it was made")]
    const { items } = await getJson(`/api/documents/${this.document}/batches?after=${revision - 1}&limit=1`)
    const [batch] = items
    if (!batch) return []
    this.actors.learn(batch.author)
    const who = document.createElement("span")
    who.className = `who ${this.actors.classOf(batch.author.id).replace("ag ", "agent ")}`
    who.textContent = this.actors.nameOf(batch.author.id)
    if (!batch.time) return [who]
    const time = document.createElement("time")
    time.dateTime = batch.time
    time.dataset.time = "ago"
    time.textContent = new Date(batch.time).toLocaleString()
    return [who, document.createTextNode(" "), time]
  }

  /**
   * @param {number} revision
   * @param {string} text
   * @param {{revision: number, text: string} | null} other
   */
  #draw(revision, text, other) {
    const place = $("#diff")
    if (!other) {
      const whole = document.createElement("pre")
      whole.className = "plain-text"
      whole.textContent = text
      place.setAttribute("aria-label", `Text at revision ${revision}`)
      return place.replaceChildren(whole)
    }
    const [old, now] = other.revision < revision ? [other, { revision, text }] : [{ revision, text }, other]
    const title = `Revision ${old.revision} against ${now.revision}`
    place.setAttribute("aria-label", title)
    const rows = diffLines(old.text, now.text)
    const changed = rows.filter((row) => row.kind === "add" || row.kind === "del").length
    const shown = this.#all ? rows : rows.slice(0, ROWS)
    const body = document.createElement("tbody")
    body.append(
      wide(changed ? `${title}: ${changed} line${changed === 1 ? "" : "s"} changed` : `${title}: the same text`),
    )
    for (const row of shown) body.append(drawn(row))
    if (shown.length < rows.length) {
      const more = wide(`${shown.length} of ${rows.length} rows. `)
      const button = document.createElement("button")
      button.className = "btn"
      button.textContent = "Show all"
      button.addEventListener("click", () => {
        this.#all = true
        this.#draw(revision, text, other)
      })
      more.cells[0].append(button)
      body.append(more)
    }
    const table = document.createElement("table")
    table.className = "diff doc-diff"
    table.append(body)
    place.replaceChildren(table)
  }

  async #restore() {
    const { revision } = this
    try {
      this.editor.replaceText(await this.#text(revision))
      this.toggle(false)
    } catch (error) {
      this.failed(`Revision ${revision} could not be brought back. ${sentence(error)}`)
    }
  }
}

/** @param {unknown} error */
const sentence = (error) => (error instanceof Error ? error.message : String(error))

/** @param {string} words */
function wide(words) {
  const row = document.createElement("tr")
  row.className = "hunk"
  const cell = row.insertCell()
  cell.colSpan = 3
  cell.textContent = words
  return row
}

/** @param {import("./linediff.js").Row | import("./linediff.js").Skip} row */
function drawn(row) {
  if (row.kind === "skip") return wide(`${row.lines} equal line${row.lines === 1 ? "" : "s"}`)
  const line = document.createElement("tr")
  if (row.kind !== "same") line.className = row.kind
  for (const number of [row.old, row.now]) {
    const cell = line.insertCell()
    cell.className = "n"
    cell.textContent = number === null ? "" : String(number)
  }
  const content = line.insertCell()
  content.className = "c"
  for (const { text, changed } of row.pieces) {
    if (!changed) {
      content.append(text)
      continue
    }
    const part = document.createElement(row.kind === "del" ? "del" : "ins")
    part.textContent = text
    content.append(part)
  }
  return line
}
