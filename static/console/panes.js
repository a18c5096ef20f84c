import { Behaviour } from "./behaviours.js"
import { WIDTH_STEP, cookieIn, cookieLine, readWishes, stepped, writeWishes } from "./wishes.js"

/** Under these widths a pane is a sheet over the page (base.css has the same). */
const SHEET_BELOW = { left: 900, right: 1160 }

/** @typedef {"left" | "right"} Side */

/**
 * @param {string} key
 * @param {string | null} value null forgets
 */
function wish(key, value) {
  const wishes = readWishes(cookieIn(document.cookie, "panes"))
  if (value === null) wishes.delete(key)
  else wishes.set(key, value)
  document.cookie = cookieLine("panes", writeWishes(wishes))
}

/** Folds the panes, or opens and closes them as sheets. On .app; buttons say data-do="left" or "right". */
export class Panes extends Behaviour {
  connect() {
    this.on(this.element, "click", (event) => this.clicked(event))
    this.on(document, "keydown", (event) => {
      if (event.key === "Escape") this.closeSheets()
    })
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const target = /** @type {Element} */ (event.target)
    const asked = target.closest("[data-do=left], [data-do=right]")
    if (asked instanceof HTMLElement) return this.toggle(/** @type {Side} */ (asked.dataset.do))
    if (!target.closest(".pane") || target.closest(".pane a[href]")) this.closeSheets()
  }

  /** @param {Side} side */
  toggle(side) {
    const pane = this.element.querySelector(`.pane-${side}`)
    if (!pane) return
    if (innerWidth < SHEET_BELOW[side]) return this.toggleSheet(side)
    const root = document.documentElement
    const fold = `fold-${side}`
    const folded = root.toggleAttribute(`data-${fold}`)
    wish(fold, folded ? "" : null)
    const next = this.element.querySelector(folded ? `.unfold-${side} button` : `.pane-${side} [data-do]`)
    if (next instanceof HTMLElement) next.focus({ preventScroll: true })
  }

  /** @param {Side} side */
  toggleSheet(side) {
    const other = side === "left" ? "right" : "left"
    this.element.classList.remove(`sheet-${other}`)
    const open = this.element.classList.toggle(`sheet-${side}`)
    const first = this.element.querySelector(`.pane-${side} :is(a[href], button:not(.grip), input)`)
    if (open && first instanceof HTMLElement) first.focus({ preventScroll: true })
  }

  closeSheets() {
    this.element.classList.remove("sheet-left", "sheet-right")
  }
}

/** The edge of a pane: dragged, or moved with the arrow keys. */
export class Grip extends Behaviour {
  connect() {
    this.on(this.element, "pointerdown", (event) => this.drag(event))
    this.on(this.element, "keydown", (event) => {
      const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0
      if (by) this.set(this.width() + by * this.sign() * WIDTH_STEP)
    })
  }

  /** @returns {Side} */
  side() {
    return this.element.dataset.side === "right" ? "right" : "left"
  }

  sign() {
    return this.side() === "left" ? 1 : -1
  }

  width() {
    return Number(document.documentElement.dataset[this.side()])
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const from = event.clientX
    const before = this.width()
    this.element.setPointerCapture(event.pointerId)
    this.element.classList.add("on")
    const moved = (/** @type {PointerEvent} */ e) => this.set(before + (e.clientX - from) * this.sign())
    const done = () => {
      this.element.removeEventListener("pointermove", moved)
      this.element.classList.remove("on")
    }
    this.element.addEventListener("pointermove", moved)
    this.element.addEventListener("pointerup", done, { once: true })
    this.element.addEventListener("pointercancel", done, { once: true })
    event.preventDefault()
  }

  /** @param {number} width */
  set(width) {
    const value = String(stepped(width))
    if (document.documentElement.dataset[this.side()] === value) return
    document.documentElement.dataset[this.side()] = value
    this.element.setAttribute("aria-valuenow", value)
    wish(this.side(), value)
  }
}
