import { Behaviour } from "./behaviours.js"
import { openDialog } from "./dialogs.js"
import { freshId, send } from "./requests.js"
import { toast } from "./toasts.js"

/** A button that opens the dialog data-dialog names. */
export class Opens extends Behaviour {
  connect() {
    this.on(this.element, "click", () => {
      const dialog = openDialog(this.element.dataset.dialog ?? "")
      const first = dialog?.querySelector("textarea, input:not([type=hidden])")
      if (first instanceof HTMLElement) first.focus()
    })
  }
}

/**
 * A form that sends its fields as JSON to data-url. data-then is where to go after, {id} being the answer's;
 * without it the dialog closes, or the page is read again with data-reload. A refusal stands in the form.
 */
export class Sends extends Behaviour {
  /** Sending the same again is the same request. */
  id = freshId()
  sent = ""

  connect() {
    this.on(this.element, "submit", (event) => {
      event.preventDefault()
      void this.send()
    })
    this.on(this.element, "keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void this.send()
    })
  }

  get form() {
    return /** @type {HTMLFormElement} */ (this.element)
  }

  async send() {
    if (!this.form.reportValidity()) return
    const fields = this.fields()
    const said = JSON.stringify(fields)
    if (said !== this.sent) this.id = freshId()
    this.sent = said
    const button = this.form.querySelector("button.btn-main")
    button?.setAttribute("disabled", "")
    this.refuse("")
    try {
      const { method = "POST", url = "" } = this.form.dataset
      this.done(await send(method, url, { ...fields, request_id: this.id }))
    } catch (error) {
      this.refuse(/** @type {Error} */ (error).message)
    } finally {
      button?.removeAttribute("disabled")
    }
  }

  /** Empty fields are left out; data-numbers names those that are numbers. */
  fields() {
    const numbers = new Set((this.form.dataset.numbers ?? "").split(" "))
    const filled = [...new FormData(this.form)].filter(([, value]) => value !== "")
    return Object.fromEntries(filled.map(([name, value]) => [name, numbers.has(name) ? Number(value) : value]))
  }

  /** @param {any} answer */
  done(answer) {
    const { then, reload } = this.form.dataset
    this.sent = ""
    if (then) return location.assign(then.replace("{id}", String(answer?.id ?? "")))
    if (reload !== undefined) return location.reload()
    this.form.reset()
    const dialog = this.form.closest("dialog")
    if (dialog instanceof HTMLDialogElement) dialog.close()
    toast("Done.", { good: true })
  }

  /** @param {string} words */
  refuse(words) {
    const place = this.form.querySelector(".refusal")
    if (!(place instanceof HTMLElement)) return words ? toast(words) : undefined
    place.textContent = words
    place.hidden = !words
  }
}
