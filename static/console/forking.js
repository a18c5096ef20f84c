import { Behaviour } from "./behaviours.js"
import { openDialog } from "./dialogs.js"

/** Opens the form that starts a branch, at the entry the reader stands at; else at the newest. */
export class Fork extends Behaviour {
  connect() {
    this.on(this.element, "click", () => this.open())
  }

  open() {
    const dialog = openDialog("branch")
    if (!dialog) return
    const row = document.querySelector("main [data-seq].at")
    const at = row?.getAttribute("data-last") ?? ""
    const field = dialog.querySelector("input[name=at]")
    if (field instanceof HTMLInputElement) field.value = at
    const words = dialog.querySelector("[data-at]")
    if (words) words.textContent = at ? `from entry ${at}` : "from the newest entry"
    const prompt = dialog.querySelector("textarea")
    prompt?.focus()
  }
}
