import { Behaviour, behaviourOf } from "./behaviours.js"
import { openDialog } from "./dialogs.js"
import { Panes } from "./panes.js"

/** Where a key is typing, not a command. */
const TYPING = "input:not([type=radio]):not([type=checkbox]), textarea, select, dialog, [contenteditable]"

/** Keys that press a button: of the row the reader is at, else the page's own. */
const PRESSED = new Set(["a", "d", "n", "f", ".", "r"])
const DECIDING = new Set(["a", "d"])

/** The keys of the console. On .app; rows say data-row, buttons say data-key. */
export class Keys extends Behaviour {
  connect() {
    this.on(document, "keydown", (event) => this.pressed(event))
    this.on(document, "click", (event) => {
      const target = /** @type {Element} */ (event.target)
      const asked = target.closest("[data-do=palette], [data-do=keys]")
      if (asked instanceof HTMLElement) openDialog(asked.dataset.do ?? "")
    })
    this.on(this.element, "focusin", (event) => {
      const row = /** @type {Element} */ (event.target).closest("[data-row]")
      if (row) this.stand(row)
    })
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault()
      return void openDialog("palette")
    }
    const target = /** @type {Element} */ (event.target)
    if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return
    // A dialog that was just closed keeps the focus until the next frame: the key is meant for the page.
    if (target.closest(TYPING) && !target.closest("dialog:not([open])")) return
    if (this.act(event.key)) event.preventDefault()
  }

  /**
   * @param {string} key
   * @returns {boolean} whether the key meant something here
   */
  act(key) {
    if (key === "j" || key === "k") return this.move(key === "j" ? 1 : -1)
    if (key === "/") return Boolean(openDialog("palette"))
    if (key === "?") return Boolean(openDialog("keys"))
    if (key === "[" || key === "]") return this.fold(key === "[" ? "left" : "right")
    if (key === "e") return this.unfold()
    if (key === "Enter") return this.open()
    return PRESSED.has(key) && this.press(key)
  }

  rows() {
    return [...this.element.querySelectorAll("main [data-row]")].filter((row) => row.checkVisibility())
  }

  row() {
    return this.element.querySelector("main [data-row].at")
  }

  /** @param {Element} row */
  stand(row) {
    const before = this.row()
    if (before !== row) before?.classList.remove("at")
    row.classList.add("at")
  }

  /** @param {number} by */
  move(by) {
    const rows = this.rows()
    if (!rows.length) return false
    const at = this.row()
    const index = at ? rows.indexOf(at) + by : this.firstSeen(rows)
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))]
    return row ? this.go(row) : false
  }

  /**
   * Moving begins where the reader looks.
   * @param {Element[]} rows
   */
  firstSeen(rows) {
    const seen = rows.findIndex((row) => row.getBoundingClientRect().bottom > 60)
    return Math.max(0, seen)
  }

  /** @param {"left" | "right"} side */
  fold(side) {
    const panes = behaviourOf(this.element, "panes")
    if (!(panes instanceof Panes)) return false
    panes.toggle(side)
    return true
  }

  unfold() {
    const row = this.row()
    const all = row ? [...row.querySelectorAll("details")] : []
    if (!all.length) return false
    const open = !all.some((one) => one.open)
    for (const one of open ? all.slice(0, 1) : all) one.open = open
    return true
  }

  open() {
    const row = this.row()
    if (!row || document.activeElement !== row) return false
    const link = row.querySelector("a[data-open]") ?? row.querySelector("a[href]")
    if (!(link instanceof HTMLElement)) return false
    link.click()
    return true
  }

  /** @param {string} key */
  press(key) {
    const named = `[data-key="${CSS.escape(key)}"]`
    const here = this.row()?.querySelector(named)
    const place = here ?? this.element.querySelector(`main ${named}, .pane ${named}`)
    if (!(place instanceof HTMLElement)) return false
    const row = place.closest("[data-row]")
    // Deciding takes two presses when the reader stands elsewhere: the first one only goes there.
    if (!here && DECIDING.has(key) && row) return this.go(row)
    if (place.matches("textarea, input, summary")) place.focus()
    else place.click()
    return true
  }

  /** @param {Element} row */
  go(row) {
    this.stand(row)
    if (row instanceof HTMLElement) row.focus({ preventScroll: true })
    row.scrollIntoView({ block: "nearest" })
    return true
  }
}
