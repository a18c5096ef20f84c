import { Behaviour } from "./behaviours.js"
import { replaceKnown } from "./fragments.js"
import { writeMoments } from "./moments.js"
import { getFragment } from "./requests.js"
import { toast } from "./toasts.js"

/** Older lines load before the reader reaches them. */
const AHEAD_PX = 600

/** The tally as it grows: older lines on scroll, changed ones in place, new ones at its end. */
export class Tally extends Behaviour {
  base = `/roots/${this.element.dataset.root}/`
  list = /** @type {HTMLElement} */ (this.element.querySelector("#tally"))
  /** @type {IntersectionObserver | undefined} */
  watcher
  loading = false

  connect() {
    this.on(this.element, "click", (event) => {
      if (!(/** @type {Element} */ (event.target).closest("[data-do=older]"))) return
      event.preventDefault()
      void this.older()
    })
    const box = this.box()
    const root = box === document.documentElement ? null : box
    const options = { root, rootMargin: `${AHEAD_PX}px 0px 0px` }
    this.watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && void this.older(), options)
    if (!location.hash) this.toEnd()
    this.watch()
  }

  disconnect() {
    this.watcher?.disconnect()
  }

  watch() {
    const older = document.getElementById("older")
    this.watcher?.disconnect()
    if (older) this.watcher?.observe(older)
  }

  box() {
    const small = matchMedia("(max-width: 899px)").matches
    return small ? document.documentElement : /** @type {HTMLElement} */ (this.element.closest("main"))
  }

  /** A long tally begins at its end; what fits needs no moving. */
  toEnd() {
    const last = this.list.lastElementChild
    const more = document.getElementById("older")?.dataset.before
    if (last && more) last.scrollIntoView({ block: "end" })
  }

  async older() {
    const control = document.getElementById("older")
    const before = control?.dataset.before
    if (!control || !before || this.loading) return
    this.loading = true
    control.classList.add("loading")
    try {
      const part = await getFragment(`${this.base}lines/?before=${before}`)
      const box = this.box()
      const [height, top] = [box.scrollHeight, box.scrollTop]
      const fresh = replaceKnown(part)
      this.list.prepend(...fresh)
      for (const one of fresh) writeMoments(one)
      box.scrollTop = top + box.scrollHeight - height
      this.watch()
    } catch (error) {
      this.watcher?.disconnect() // the reader asks again by the button
      control.classList.remove("loading")
      toast(`Older lines did not load. ${/** @type {Error} */ (error).message}`)
    } finally {
      this.loading = false
    }
  }

  last() {
    const seqs = [...this.list.children].map((line) => Number(line.getAttribute("data-seq")))
    return Math.max(0, ...seqs)
  }

  /**
   * Lines about these conversations changed, or new ones came.
   * @param {number[]} changed
   */
  async refresh(changed) {
    const part = await getFragment(`${this.base}parts/?after=${this.last()}&changed=${changed.join(",")}`)
    for (const one of part.children) writeMoments(one)
    const last = this.last()
    const fresh = replaceKnown(part).filter((line) => Number(line.getAttribute("data-seq")) > last)
    this.list.append(...fresh)
    for (const one of fresh) one.classList.add("fresh-in")
  }
}
