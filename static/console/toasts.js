// What just happened, or was refused, said at the corner of the page. A refusal stays until it is closed.

const STAYS_MS = 4_000

/**
 * @param {string} words
 * @param {{good?: boolean}} [how]
 */
export function toast(words, { good = false } = {}) {
  const place = document.getElementById("toasts")
  if (!place) return
  const box = document.createElement("div")
  box.className = good ? "toast slid good" : "toast slid"
  const said = document.createElement("p")
  said.textContent = words
  box.append(said)
  if (good) setTimeout(() => box.remove(), STAYS_MS)
  else box.append(closer(box))
  place.append(box)
}

/** @param {HTMLElement} box */
function closer(box) {
  const button = document.createElement("button")
  button.type = "button"
  button.className = "btn btn-quiet btn-icon"
  button.setAttribute("aria-label", "Close")
  button.textContent = "×"
  button.addEventListener("click", () => box.remove())
  return button
}
