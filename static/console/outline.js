import { Behaviour } from "./behaviours.js"

/** Filters the outline beside it: by words of the title or #id, and by state. */
export class Outline extends Behaviour {
  input = /** @type {HTMLInputElement} */ (this.element.querySelector("input[type=search]"))

  connect() {
    this.on(this.element, "input", () => this.filter())
    this.on(this.input, "keydown", (event) => {
      if (event.key === "Escape" && this.input.value) {
        this.input.value = ""
        this.filter()
        event.stopPropagation()
      }
    })
  }

  filter() {
    const words = this.input.value.trim().toLowerCase().split(/\s+/).filter(Boolean)
    const which = this.element.querySelector("input[type=radio]:checked")
    const active = which instanceof HTMLInputElement && which.value === "active"
    const outline = document.getElementById("outline")
    if (!outline) return
    const narrowed = active || words.length > 0
    for (const line of /** @type {NodeListOf<HTMLElement>} */ (outline.querySelectorAll("a.node"))) {
      const found = words.every((word) => line.dataset.find?.includes(word))
      line.dataset.hit = String(found && (!active || line.dataset.state !== "idle"))
    }
    for (const item of outline.querySelectorAll("li")) {
      item.hidden = narrowed && !item.querySelector("a.node[data-hit=true]")
    }
    for (const fold of outline.querySelectorAll("details")) {
      fold.dataset.before ??= String(fold.open)
      fold.open = narrowed ? fold.querySelector("a.node[data-hit=true]") !== null : fold.dataset.before === "true"
      if (!narrowed) delete fold.dataset.before
    }
  }
}
