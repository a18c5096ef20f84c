import { Attaching } from "./attaching.js"
import { Behaviour, behaviourOf } from "./behaviours.js"
import { freshId, send } from "./requests.js"
import { toast } from "./toasts.js"

/** The form that sends to a conversation. Enter sends, Shift-Enter breaks; what was typed survives a refusal. */
export class Composer extends Behaviour {
  text = /** @type {HTMLTextAreaElement} */ (this.element.querySelector("textarea"))
  button = /** @type {HTMLButtonElement} */ (this.element.querySelector("button.btn-main"))
  /** The id of what is being sent: sending the same again is the same request. */
  id = freshId()
  sent = ""

  connect() {
    this.on(this.element, "submit", (event) => {
      event.preventDefault()
      void this.send()
    })
    this.on(this.text, "keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
      event.preventDefault()
      void this.send()
    })
  }

  async send() {
    const content = this.text.value
    if (this.button.disabled) return
    const files = behaviourOf(this.element, "attaching")
    const attaching = files instanceof Attaching ? files : undefined
    if (!content.trim()) {
      if (attaching?.chips.children.length) toast("Say what is to be done with the files, then send them.")
      return
    }
    const chosen = this.element.querySelector("input[name=when]:checked")
    const when = chosen instanceof HTMLInputElement ? chosen.value : "steer"
    this.button.disabled = true
    try {
      const attachments = (await attaching?.names()) ?? []
      const said = JSON.stringify([content, attachments])
      if (said !== this.sent) this.id = freshId()
      this.sent = said
      await send("POST", `/api/conversations/${this.element.dataset.conversation}/submissions`, {
        type: "input",
        content,
        when_busy: when,
        attachments,
        request_id: this.id,
      })
      if (this.text.value === content) this.text.value = ""
      attaching?.sent(attachments)
      this.sent = ""
    } catch (error) {
      toast(/** @type {Error} */ (error).message)
    } finally {
      this.button.disabled = false
    }
  }
}

/** Takes a queued input back; its text returns to an empty composer. */
export class Withdraw extends Behaviour {
  connect() {
    this.on(this.element, "click", () => this.withdraw())
  }

  async withdraw() {
    const words = this.element.parentElement?.querySelector(".cut")?.textContent ?? ""
    try {
      await send("DELETE", `/api/submissions/${this.element.dataset.submission}`)
      const say = document.getElementById("say")
      if (say instanceof HTMLTextAreaElement && !say.value) say.value = words
      this.element.closest("li")?.remove()
    } catch (error) {
      toast(/** @type {Error} */ (error).message)
    }
  }
}

/** Ends the run and what it waits for. */
export class Stop extends Behaviour {
  connect() {
    this.on(this.element, "click", () => this.stop())
  }

  async stop() {
    const flow = document.getElementById("flow")
    try {
      await send("POST", `/api/conversations/${flow?.dataset.conversation}/stop`, {})
      toast("Stopping.", { good: true })
    } catch (error) {
      toast(/** @type {Error} */ (error).message)
    }
  }
}
