// The latest revisions, in the right pane: neighbours of one author are one line.

import { writeMoments } from "../console/moments.js"

const SHOWN = 8
const KEPT = 60

/** @typedef {{seq: number, author: import("./actors.js").Author, time?: string}} Recorded */

export class Revisions {
  /** @type {Recorded[]} */
  #recorded = []

  /**
   * @param {object} of
   * @param {import("./actors.js").Actors} of.actors
   * @param {(revision: number) => void} of.open
   */
  constructor({ actors, open }) {
    this.actors = actors
    this.open = open
    this.list = /** @type {HTMLElement} */ (document.getElementById("revisions"))
  }

  /** @param {Recorded[]} recorded in any order, some maybe known */
  add(recorded) {
    const known = new Set(this.#recorded.map(({ seq }) => seq))
    for (const one of recorded) {
      this.actors.learn(one.author)
      if (!known.has(one.seq)) this.#recorded.push(one)
    }
    this.#recorded = this.#recorded.sort((a, b) => b.seq - a.seq).slice(0, KEPT)
    this.#draw()
  }

  #draw() {
    /** @type {{from: number, to: number, author: number, time?: string}[]} */
    const groups = []
    for (const { seq, author, time } of this.#recorded) {
      const last = groups[groups.length - 1]
      if (last?.author === author.id && last.from === seq + 1) last.from = seq
      else groups.push({ from: seq, to: seq, author: author.id, time })
    }
    this.list.replaceChildren(...groups.slice(0, SHOWN).map((group) => this.#line(group)))
    writeMoments(this.list)
  }

  /** @param {{from: number, to: number, author: number, time?: string}} group */
  #line({ from, to, author, time }) {
    const link = document.createElement("a")
    link.href = `?revision=${to}`
    link.addEventListener("click", (event) => {
      event.preventDefault()
      this.open(to)
    })
    const number = document.createElement("span")
    number.className = "eid"
    number.textContent = from === to ? `r${to}` : `r${from}–${to}`
    const who = document.createElement("span")
    who.className = `who grow ${this.actors.classOf(author).replace("ag ", "agent ")}`
    who.textContent = this.actors.nameOf(author)
    link.append(number, who)
    if (time) {
      const moment = document.createElement("time")
      moment.className = "quiet"
      moment.dateTime = time
      moment.dataset.time = "age"
      link.append(moment)
    }
    const item = document.createElement("li")
    item.append(link)
    return item
  }
}
