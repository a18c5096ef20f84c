import { exact, said } from "./times.js"

/** How often the ages on a page are written anew; an age under a minute may lag by this much. */
const EVERY_MS = 10_000

/** @param {ParentNode} part */
export function writeMoments(part) {
  const now = new Date()
  for (const element of part.querySelectorAll("time[data-time]")) {
    if (!(element instanceof HTMLTimeElement)) continue
    const time = new Date(element.dateTime)
    if (Number.isNaN(time.getTime())) continue
    const words = said(time, now, element.dataset.time ?? "ago")
    if (element.textContent !== words) element.textContent = words
    if (!element.dataset.own) {
      element.title = exact(time)
      element.dataset.own = "1"
    }
  }
}

/** Keeps every time on the page fresh, in the reader's own zone. */
export function keepMoments() {
  writeMoments(document)
  setInterval(() => document.hidden || writeMoments(document), EVERY_MS)
  document.addEventListener("visibilitychange", () => document.hidden || writeMoments(document))
}
