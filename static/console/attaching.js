import { Behaviour } from "./behaviours.js"
import { freshId, send, upload } from "./requests.js"
import { thin } from "./times.js"
import { toast } from "./toasts.js"

/** @typedef {{name: string, filename: string, status: string, chars: number, reason: string | null}} Attachment */

/** What the page says when the state of its conversation brought attachments. */
export const ATTACHMENTS = "console:attachments"

/**
 * The files that the next input brings: chosen, dropped anywhere on the page, or pasted. Beside composer, on the form.
 * Each is uploaded at once and stands as a chip, which can be removed until it is sent.
 */
export class Attaching extends Behaviour {
  chips = /** @type {HTMLElement} */ (this.element.querySelector(".chips"))
  model = /** @type {HTMLTemplateElement} */ (this.element.querySelector("template"))
  picker = /** @type {HTMLInputElement} */ (this.element.querySelector("input[type=file]"))
  limit = Number(this.element.dataset.limit)
  most = Number(this.element.dataset.most)
  /** @type {Map<Element, AbortController>} */
  under = new Map()
  /** @type {Set<Promise<void>>} */
  coming = new Set()

  connect() {
    const button = this.element.querySelector("[data-attach]")
    if (button) this.on(button, "click", () => this.picker.click())
    this.on(this.picker, "change", () => {
      this.add([...(this.picker.files ?? [])])
      this.picker.value = ""
    })
    this.on(this.element, "paste", (event) => this.pasted(event))
    this.on(this.chips, "click", (event) => {
      const chip = event.target.closest("button")?.closest("li")
      if (chip) void this.remove(chip)
    })
    this.on(document, ATTACHMENTS, (event) => this.told(event.detail))
    this.on(window, "dragover", (event) => this.over(event))
    this.on(window, "dragleave", (event) => event.relatedTarget === null && this.dropping(false))
    this.on(window, "drop", (event) => this.dropped(event))
  }

  disconnect() {
    for (const one of this.under.values()) one.abort()
  }

  /** The names of what was uploaded, in the order of the chips, once all of it has come. */
  async names() {
    await Promise.all(this.coming)
    const chips = /** @type {HTMLElement[]} */ ([...this.chips.querySelectorAll("[data-name]")])
    return chips.map((chip) => chip.dataset.name ?? "")
  }

  /** @param {string[]} names */
  sent(names) {
    for (const name of names) this.chips.querySelector(`[data-name="${CSS.escape(name)}"]`)?.remove()
  }

  /** @param {ClipboardEvent} event */
  pasted(event) {
    const files = [...(event.clipboardData?.files ?? [])]
    if (!files.length) return
    event.preventDefault()
    this.add(files)
  }

  /** @param {DragEvent} event */
  over(event) {
    if (!event.dataTransfer?.types.includes("Files")) return
    event.preventDefault()
    this.dropping(true)
  }

  /** @param {DragEvent} event */
  dropped(event) {
    this.dropping(false)
    if (!event.dataTransfer?.types.includes("Files")) return
    event.preventDefault()
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file")
    const folders = items.filter((item) => item.webkitGetAsEntry?.()?.isDirectory)
    if (folders.length) toast("A folder cannot be attached. Drop the files in it, or an archive of their text.")
    this.add(items.filter((item) => !folders.includes(item)).map((item) => item.getAsFile()))
  }

  /** @param {boolean} on */
  dropping(on) {
    this.element.classList.toggle("dropping", on)
  }

  /** @param {(File | null)[]} files */
  add(files) {
    for (const file of files) {
      const refused = file && this.refusal(file)
      if (refused) toast(refused)
      else if (file) {
        const coming = this.bring(file).finally(() => this.coming.delete(coming))
        this.coming.add(coming)
      }
    }
  }

  /** @param {File} file */
  refusal(file) {
    if (!file.name) return "A file without a name cannot be attached: give it one with an extension first."
    if (file.size > this.limit)
      return `${file.name} has ${thin(file.size)} bytes; an attachment has at most ${thin(this.limit)}. Attach a part of it.`
    if (this.chips.children.length >= this.most)
      return `One message brings at most ${this.most} attachments: ${file.name} was left out.`
    return ""
  }

  /** @param {File} file */
  async bring(file) {
    const fragment = /** @type {DocumentFragment} */ (this.model.content.cloneNode(true))
    const chip = /** @type {HTMLElement} */ (fragment.firstElementChild)
    const meter = /** @type {HTMLProgressElement} */ (chip.querySelector("progress"))
    write(chip, ".cut", file.name)
    chip.querySelector("button")?.setAttribute("aria-label", `Remove ${file.name}`)
    this.chips.append(chip)
    const ended = new AbortController()
    this.under.set(chip, ended)
    try {
      const form = new FormData()
      form.append("file", file)
      form.append("request_id", freshId())
      const answer = await upload(`/api/conversations/${this.element.dataset.conversation}/attachments`, form, {
        signal: ended.signal,
        progressed: (part) => {
          meter.value = part
          write(chip, ".state", `${Math.floor(part * 100)} %`)
        },
      })
      if (ended.signal.aborted) return void (await takeBack(answer.name))
      chip.dataset.name = answer.name
      this.told([answer])
    } catch (error) {
      chip.remove()
      if (!ended.signal.aborted) toast(`${file.name} was not attached. ${/** @type {Error} */ (error).message}`)
    } finally {
      meter.remove()
      this.under.delete(chip)
    }
  }

  /** @param {HTMLElement} chip */
  async remove(chip) {
    const next = /** @type {HTMLElement | null} */ (chip.nextElementSibling ?? chip.previousElementSibling)
    const { name } = chip.dataset
    this.under.get(chip)?.abort()
    chip.remove()
    const focus = next?.querySelector("button") ?? this.element.querySelector("textarea")
    focus?.focus()
    if (name) await takeBack(name)
  }

  /**
   * What the server knows of the files by now.
   * @param {Attachment[]} attachments
   */
  told(attachments) {
    for (const one of attachments) {
      const chip = this.chips.querySelector(`[data-name="${CSS.escape(one.name)}"]`)
      if (chip) write(chip, ".state", status(one))
    }
  }
}

/** @param {string} name */
async function takeBack(name) {
  try {
    await send("DELETE", `/api/attachments/${name}`)
  } catch (error) {
    toast(/** @type {Error} */ (error).message)
  }
}

/** @param {Attachment} one */
function status({ status, chars, reason }) {
  if (status === "pending") return "extracting"
  return status === "extracted" ? `${thin(chars)} characters` : (reason ?? "no reason given")
}

/**
 * @param {Element} within
 * @param {string} where
 * @param {string} words
 */
function write(within, where, words) {
  const place = within.querySelector(where)
  if (place) place.textContent = words
}
