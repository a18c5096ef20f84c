import { subscribe } from "../live/socket.js"
import { Behaviour } from "./behaviours.js"
import { replaceElement } from "./fragments.js"
import { writeMoments } from "./moments.js"
import { getFragment } from "./requests.js"
import { atMostEvery } from "./throttle.js"

/** The dashboard of a busy team changes many times a second; it is read again at most so often. */
const REST_MS = 1_000
/** More changed roots than this come with the next change of each; the server refuses longer lists. */
const MOST = 200

/** Follows the team's board: rows say which roots changed, the server renders them. Rows keep their places. */
export class BoardLive extends Behaviour {
  /** @type {Set<number>} */
  changed = new Set()
  read = atMostEvery(() => this.readAgain(), REST_MS)
  opened = false

  connect() {
    this.on(this.element, "decided", (event) => this.decided(event))
    this.stop = subscribe("team", {
      onSnapshot: () => {
        this.element.dataset.live = "1"
        if (this.opened) this.read()
        this.opened = true
      },
      onRows: (rows) => {
        for (const row of rows) if (typeof row.root === "number") this.changed.add(row.root)
        this.read()
      },
    })
  }

  disconnect() {
    this.stop?.()
  }

  /** What was decided here is over at once; the board's own rows follow. */
  decided(/** @type {Event} */ event) {
    const row = /** @type {Element} */ (event.target).closest("li")
    if (row) grey(row)
    this.read()
  }

  async readAgain() {
    const changed = [...this.changed].slice(0, MOST)
    this.changed.clear()
    const part = await getFragment(`/board/parts/?changed=${changed.join(",")}`).catch(() => null)
    if (!part) return
    for (const one of part.children) writeMoments(one)
    this.putNeeds(part.querySelector("#needs"))
    const roots = document.getElementById("roots")
    for (const fresh of [...part.querySelectorAll("tr")]) {
      const old = document.getElementById(fresh.id)
      if (old) replaceElement(old, fresh)
      else roots?.append(fresh)
    }
    for (const id of ["feed", "board-totals", "board-today", "need"]) {
      const [old, fresh] = [document.getElementById(id), part.querySelector(`#${id}`)]
      if (old && fresh) replaceElement(old, fresh)
    }
  }

  /**
   * New ones come at the end. What is decided stays, greyed, while the reader's pointer or focus is among the rows:
   * a row that moved up under a finger would be approved in the place of another.
   * @param {Element | null} fresh
   */
  putNeeds(fresh) {
    const old = document.getElementById("needs")
    if (!old || !fresh) return
    const list = old.querySelector("ul")
    if (!list || !list.matches(":hover, :focus-within")) return replaceElement(old, fresh)
    for (const row of [...list.children]) {
      const next = fresh.querySelector(`#${row.id}`)
      if (next) next.remove()
      else grey(row)
    }
    list.append(...fresh.querySelectorAll("ul > li"))
    const count = old.querySelector(".count")
    if (count) count.textContent = fresh.querySelector(".count")?.textContent ?? ""
    list.addEventListener("pointerleave", () => this.read(), { once: true })
  }
}

/** @param {Element} row */
function grey(row) {
  row.classList.add("gone")
  for (const button of row.querySelectorAll("button")) button.disabled = true
}
