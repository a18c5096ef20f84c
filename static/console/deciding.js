import { Behaviour } from "./behaviours.js"
import { send } from "./requests.js"
import { toast } from "./toasts.js"

/** What was decided, in words. @type {Record<string, string>} */
const SAID = { approve: "Approved.", decline: "Declined.", always: "Approved, and allowed from now on." }

/**
 * The form of one approval. Without scripts it posts and comes back; with them it decides in place. A decision that somebody
 * else made first is told with who it was. On form.decide.
 */
export class Decides extends Behaviour {
  connect() {
    this.on(this.element, "submit", (event) => {
      event.preventDefault()
      const pressed = /** @type {SubmitEvent} */ (event).submitter
      void this.decide(pressed instanceof HTMLButtonElement ? pressed.value : "")
    })
  }

  /** @param {string} decision */
  async decide(decision) {
    const form = /** @type {HTMLFormElement} */ (this.element)
    const fields = new FormData(form)
    const buttons = form.querySelectorAll("button")
    const always = decision === "always"
    for (const button of buttons) button.disabled = true
    try {
      await send("POST", `/api/approvals/${form.dataset.approval}/decision`, {
        decision: always ? "approve" : decision,
        comment: decision === "decline" ? String(fields.get("comment") ?? "") : "",
        ...(always ? { always: String(fields.get("match") ?? "") } : {}),
      })
      toast(SAID[decision] ?? "Decided.", { good: true })
    } catch (error) {
      toast(/** @type {Error} */ (error).message)
      for (const button of buttons) button.disabled = false
    }
    form.dispatchEvent(new CustomEvent("decided", { bubbles: true }))
  }
}
