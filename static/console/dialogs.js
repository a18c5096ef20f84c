import { Behaviour } from "./behaviours.js"

/** A dialog: a click beside it or on data-do="close" closes it. The browser closes it on Escape. */
export class Dialog extends Behaviour {
  connect() {
    this.on(this.element, "click", (event) => {
      const target = /** @type {Element} */ (event.target)
      if (target === this.element || target.closest("[data-do=close]")) this.dialog.close()
    })
  }

  get dialog() {
    return /** @type {HTMLDialogElement} */ (this.element)
  }
}

/** @param {string} id */
export function openDialog(id) {
  const dialog = document.getElementById(id)
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal()
  return dialog
}
