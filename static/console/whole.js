import { Behaviour, behaviourOf } from "./behaviours.js"
import { Flow } from "./flow.js"
import { toast } from "./toasts.js"

/** "Show all": fetches the entry with nothing left out. */
export class Whole extends Behaviour {
  connect() {
    this.on(this.element, "click", () => this.show())
  }

  async show() {
    const flow = behaviourOf(document.getElementById("flow"), "flow")
    if (!(flow instanceof Flow)) return
    this.element.setAttribute("disabled", "")
    this.element.textContent = "Loading"
    try {
      await flow.whole(Number(this.element.dataset.entry))
    } catch (error) {
      toast(/** @type {Error} */ (error).message)
      this.element.removeAttribute("disabled")
      this.element.textContent = "Show all"
    }
  }
}
