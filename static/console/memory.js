// The memory of a root: characters left while typing, a filter over the index, a question before deleting.

import { Behaviour, start } from "./behaviours.js"
import { leftOf } from "./counting.js"

/** A field with a limit: data-limit, said in the element with the id in data-says. */
class Counted extends Behaviour {
  connect() {
    this.on(this.element, "input", () => this.say())
    this.say()
  }

  say() {
    const field = this.element
    const out = document.getElementById(field.dataset.says ?? "")
    if (!out || !(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement)) return
    const left = leftOf(field.value, Number(field.dataset.limit))
    out.textContent = left.words
    out.classList.toggle("over", left.over)
    field.setCustomValidity(left.over ? left.words : "")
  }
}

/** Hides the lines that do not have the words typed. */
class Filters extends Behaviour {
  connect() {
    this.on(this.element, "input", () => this.filter())
  }

  filter() {
    const field = this.element
    if (!(field instanceof HTMLInputElement)) return
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
    for (const line of document.querySelectorAll(`${field.dataset.filters} li`)) {
      const text = `${line.textContent} ${line.querySelector("a")?.title ?? ""}`.toLowerCase()
      line.toggleAttribute("hidden", !words.every((word) => text.includes(word)))
    }
  }
}

/** A button whose act cannot be taken back asks first. */
class Asks extends Behaviour {
  connect() {
    this.on(this.element, "click", (event) => {
      if (!confirm(this.element.dataset.asks)) event.preventDefault()
    })
  }
}

start({ asks: Asks, counted: Counted, filters: Filters })
