import { Dialog } from "./dialogs.js"
import { commandsOf, matching } from "./commands.js"
import { getJson } from "./requests.js"

/** Typing rests this long before the server is asked. */
const REST_MS = 90

/** @typedef {{label: string, hint?: string, icon?: string, url?: string, press?: () => void}} Item */

/** Goes anywhere and does anything: the page's own commands at once, places from the server as one types. */
export class Palette extends Dialog {
  input = /** @type {HTMLInputElement} */ (this.element.querySelector("input"))
  list = /** @type {HTMLElement} */ (this.element.querySelector("ul"))
  say = /** @type {HTMLElement} */ (this.element.querySelector("[role=status]"))
  /** @type {Item[]} */
  items = []
  at = 0
  /** @type {AbortController | undefined} */
  asked
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  waiting

  connect() {
    super.connect()
    this.on(this.input, "input", () => this.typed())
    this.on(this.input, "keydown", (event) => this.pressed(event))
    this.on(this.list, "click", (event) => this.clicked(event))
    const opening = new MutationObserver(() => this.dialog.open && this.opened())
    opening.observe(this.element, { attributeFilter: ["open"] })
  }

  disconnect() {
    clearTimeout(this.waiting)
    this.asked?.abort()
  }

  opened() {
    this.input.select()
    this.typed()
  }

  typed() {
    const words = this.input.value.trim()
    this.asked?.abort()
    clearTimeout(this.waiting)
    this.show(matching(commandsOf(document), words), [])
    this.waiting = setTimeout(() => this.ask(words), REST_MS)
  }

  /** @param {string} words */
  async ask(words) {
    this.asked = new AbortController()
    try {
      const url = `${this.element.dataset.source}?q=${encodeURIComponent(words)}`
      const found = await getJson(url, this.asked.signal)
      this.show(matching(commandsOf(document), words), found.items)
      this.say.textContent = found.say ?? ""
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return
      this.say.textContent = "The server does not answer; only this page's own commands are listed."
    }
  }

  /**
   * @param {Item[]} commands
   * @param {Item[]} places
   */
  show(commands, places) {
    this.items = [...places, ...commands]
    this.at = 0
    this.list.replaceChildren(...this.items.map((item, index) => this.row(item, index)))
    this.mark()
  }

  /**
   * @param {Item} item
   * @param {number} index
   */
  row(item, index) {
    const line = document.createElement("li")
    line.setAttribute("role", "presentation")
    const link = document.createElement("a")
    link.id = `palette-${index}`
    link.setAttribute("role", "option")
    link.tabIndex = -1
    link.href = item.url ?? "#"
    const label = document.createElement("span")
    label.className = "grow cut"
    label.textContent = item.label
    const hint = document.createElement("span")
    hint.className = "eid"
    hint.textContent = item.hint ?? ""
    link.append(picture(item.icon ?? "i-play"), label, hint)
    line.append(link)
    return line
  }

  mark() {
    const links = this.list.querySelectorAll("a")
    links.forEach((link, index) => link.setAttribute("aria-selected", String(index === this.at)))
    this.input.setAttribute("aria-activedescendant", links.length ? `palette-${this.at}` : "")
    links[this.at]?.scrollIntoView({ block: "nearest" })
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0
    if (by && this.items.length) {
      this.at = (this.at + by + this.items.length) % this.items.length
      this.mark()
      event.preventDefault()
    } else if (event.key === "Enter") {
      event.preventDefault()
      this.list.querySelectorAll("a")[this.at]?.click()
    }
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const link = /** @type {Element} */ (event.target).closest("a")
    if (!link) return
    const item = this.items[Number(link.id.slice("palette-".length))]
    if (item?.press) {
      event.preventDefault()
      this.dialog.close()
      item.press()
    } else if (!event.metaKey && !event.ctrlKey) {
      this.dialog.close()
    }
  }
}

/** @param {string} name a symbol of the sprite */
function picture(name) {
  const space = "http://www.w3.org/2000/svg"
  const svg = document.createElementNS(space, "svg")
  svg.setAttribute("class", name.startsWith("s-") ? `s ${name}` : "i")
  svg.setAttribute("aria-hidden", "true")
  const use = document.createElementNS(space, "use")
  use.setAttribute("href", `#${name}`)
  svg.append(use)
  return svg
}
