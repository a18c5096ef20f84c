// Who is here: sends where this reader is, shows where the others are (D17).

/** At most five a second. */
const LEAST_MS = 200

/** A sign of life: thirty seconds without one is leaving. */
const SIGN_MS = 10_000

/**
 * @typedef {object} Person
 * @property {string} connection
 * @property {import("./actors.js").Author} who
 * @property {number | null} anchor null: leaving
 * @property {number | null} head
 * @property {string} unit of both; only UTF-16 units are a place in this view
 * @property {number | null} revision of the text that they point into
 *
 * @typedef {{people: Person[], readers?: number, you?: string}} PresenceFrame `you` is this reader's own connection
 */

export class Presence {
  /** @type {Map<string, Person>} */
  #people = new Map()
  #readers = 0
  /** @type {string | null} */
  #own = null
  #lastSent = 0
  /** Whether the server takes presence now: it does from those who watch. */
  isHeard = false
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #due

  /**
   * @param {object} of
   * @param {number} of.document
   * @param {import("./actors.js").Actors} of.actors
   * @param {import("./editor.js").Editor} of.editor
   * @param {(frame: object) => boolean} of.send
   * @param {HTMLElement} of.list
   */
  constructor({ document: id, actors, editor, send, list }) {
    this.document = id
    this.actors = actors
    this.editor = editor
    this.send = send
    this.list = list
    setInterval(() => document.hidden || this.tell(), SIGN_MS)
    addEventListener("pagehide", () => this.leave())
  }

  /** The cursor moved: the others hear of it, at most five times a second. */
  moved() {
    this.#due ??= setTimeout(() => this.tell(), Math.max(0, this.#lastSent + LEAST_MS - Date.now()))
  }

  tell() {
    clearTimeout(this.#due)
    this.#due = undefined
    if (!this.isHeard) return
    const place = this.editor.selection
    const frame = { op: "presence", document: this.document, ...place, unit: "utf16" }
    if (!this.send(frame)) return
    this.#lastSent = Date.now()
  }

  leave() {
    const { revision } = this.editor.selection
    this.send({ op: "presence", document: this.document, anchor: null, head: null, unit: "utf16", revision })
  }

  /** The connection is another: the server tells anew who is here. */
  forget() {
    this.#people.clear()
    this.#own = null
    this.editor.hidePeople()
    this.#draw()
  }

  /** @param {PresenceFrame} frame */
  receive({ people, readers = 0, you }) {
    this.#readers = readers
    if (you) this.#own = you
    for (const person of people) {
      const { connection, who, anchor, head, unit, revision } = person
      this.actors.learn(who)
      if (anchor === null || head === null) {
        this.#people.delete(connection)
        this.editor.hidePerson(connection)
        continue
      }
      this.#people.set(connection, person)
      if (connection === this.#own || unit !== "utf16") continue
      this.editor.showPerson({
        connection,
        who,
        anchor,
        head,
        revision: revision ?? this.editor.peer.confirmed.revision,
      })
    }
    this.#draw()
  }

  #draw() {
    /** @type {Map<number, HTMLElement>} */
    const shown = new Map()
    for (const { who } of this.#people.values()) {
      if (shown.has(who.id)) continue
      const item = document.createElement("li")
      const name = document.createElement("span")
      name.className = `who ${this.actors.classOf(who.id).replace("ag ", "agent ")}`
      name.textContent = who.name ?? this.actors.nameOf(who.id)
      item.append(name)
      shown.set(who.id, item)
    }
    const others = Math.max(0, this.#readers - this.#people.size)
    const rest = document.createElement("li")
    rest.className = "quiet small wide"
    rest.textContent = others ? `${others} reading` : ""
    this.list.replaceChildren(...shown.values(), rest)
  }
}
