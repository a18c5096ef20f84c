import { Behaviour } from "./behaviours.js"
import { toast } from "./toasts.js"

/** A button that copies: data-copy, or the text of the element with the id in data-copy-from, or its neighbour's. */
export class Copy extends Behaviour {
  connect() {
    this.on(this.element, "click", () => this.copy())
  }

  text() {
    const { copy, copyFrom } = this.element.dataset
    if (copy !== undefined) return copy
    const from = copyFrom ? document.getElementById(copyFrom) : this.element.parentElement?.querySelector("code, pre")
    return from?.textContent ?? ""
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.text())
    } catch {
      return toast("The browser did not allow copying. Select the text and copy it by hand.")
    }
    const use = this.element.querySelector("use")
    const before = use?.getAttribute("href")
    if (!use || before === "#i-check" || !before) return
    use.setAttribute("href", "#i-check")
    const label = this.element.getAttribute("aria-label")
    this.element.setAttribute("aria-label", "Copied")
    setTimeout(() => {
      use.setAttribute("href", before)
      if (label) this.element.setAttribute("aria-label", label)
    }, 1500)
  }
}
