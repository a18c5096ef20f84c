import { Behaviour } from "./behaviours.js"
import { replaceElement, replaceKnown } from "./fragments.js"
import { writeMoments } from "./moments.js"
import { getFragment } from "./requests.js"
import { thin } from "./times.js"
import { toast } from "./toasts.js"

/** So near its end, the reader follows the conversation. */
const NEAR_PX = 80
/** Older entries load before the reader reaches them. */
const AHEAD_PX = 600

/** The entries of a conversation: older ones come on scroll, new ones at the end, and nothing looked at moves. */
export class Flow extends Behaviour {
  entries = /** @type {HTMLElement} */ (this.element.querySelector("#entries"))
  pill = /** @type {HTMLButtonElement} */ (this.element.querySelector(".new-pill"))
  base = `/conversations/${this.element.dataset.conversation}/`
  last = Number(this.element.dataset.last)
  total = Number(this.element.dataset.total)
  unseen = 0
  /** @type {Promise<void> | undefined} */
  loading
  /** @type {Promise<void> | undefined} */
  catching
  again = false

  connect() {
    this.on(this.element, "click", (event) => this.clicked(event))
    this.on(this.scroller(), "scroll", () => this.scrolled(), { passive: true })
    this.on(window, "hashchange", () => this.goToHash())
    const scroller = this.scroller()
    this.watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && void this.older(), {
      root: scroller instanceof Window ? null : scroller,
      rootMargin: `${AHEAD_PX}px 0px 0px`,
    })
    this.begin()
  }

  disconnect() {
    this.watcher?.disconnect()
  }

  /** Where the reader begins: at the entry that was asked for, else at the end. */
  begin() {
    if (location.hash) this.goToHash()
    else if (!this.element.dataset.at) this.toBottom()
    this.watchOlder()
  }

  /** The control is a new element after each page: only a new one is told of anew. */
  watchOlder() {
    const older = document.getElementById("older")
    this.watcher?.disconnect()
    if (older) this.watcher?.observe(older)
  }

  /** In wide windows main scrolls, in narrow ones the page. */
  scroller() {
    return matchMedia("(max-width: 899px)").matches ? window : /** @type {HTMLElement} */ (this.element.closest("main"))
  }

  box() {
    const scroller = this.scroller()
    return scroller instanceof Window ? document.documentElement : scroller
  }

  atBottom() {
    const box = this.box()
    return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX
  }

  /** Whether the page ends with the newest entry; else what comes is only counted. */
  showsNewest() {
    return this.last >= this.total
  }

  toBottom() {
    const box = this.box()
    box.scrollTop = box.scrollHeight
    this.seen()
  }

  scrolled() {
    if (this.unseen && this.atBottom()) this.seen()
  }

  seen() {
    this.unseen = 0
    this.pill.hidden = true
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const target = /** @type {Element} */ (event.target)
    if (target.closest("[data-do=older]")) {
      event.preventDefault()
      void this.older()
    } else if (target.closest("[data-do=newer]")) {
      event.preventDefault()
      void this.catchUp(this.total)
    } else if (target.closest("[data-do=bottom]")) {
      if (this.showsNewest()) this.toBottom()
      else location.assign(this.base)
    }
  }

  /** The number in the address: an entry of this page, else a page that holds it. */
  goToHash() {
    const seq = /^#e(\d+)$/.exec(location.hash)?.[1]
    if (!seq) return
    const place = this.placeOf(Number(seq))
    if (place) return this.show(place)
    if (this.element.dataset.at !== seq) location.replace(`${this.base}?at=${seq}#e${seq}`)
  }

  /**
   * The element that stands for an entry: its own, or that of the call it answers.
   * @param {number} seq
   */
  placeOf(seq) {
    const own = document.getElementById(`e${seq}`)
    if (own) return own
    const all = /** @type {HTMLElement[]} */ ([...this.entries.querySelectorAll(":scope > [data-seq]")])
    return all.find((e) => Number(e.dataset.seq) <= seq && seq <= Number(e.dataset.last)) ?? null
  }

  /** @param {HTMLElement} place */
  show(place) {
    if (place instanceof HTMLDetailsElement) place.open = true
    place.scrollIntoView({ block: "start" })
    place.focus({ preventScroll: true })
    place.classList.add("fresh-in")
  }

  /** The page before the first entry shown. What the reader looks at stays where it is. */
  older() {
    const control = document.getElementById("older")
    const first = Number(control?.dataset.first)
    if (!control || first <= 1 || this.loading) return this.loading
    control.classList.add("loading")
    this.loading = this.loadOlder(first).finally(() => (this.loading = undefined))
    return this.loading
  }

  /** @param {number} first */
  async loadOlder(first) {
    const control = document.getElementById("older")
    try {
      const part = await getFragment(`${this.base}entries/?before=${first}`)
      const box = this.box()
      const [height, top] = [box.scrollHeight, box.scrollTop]
      const fresh = replaceKnown(part)
      this.entries.prepend(...fresh)
      for (const one of fresh) writeMoments(one)
      box.scrollTop = top + box.scrollHeight - height
      this.count()
      this.watchOlder()
    } catch (error) {
      this.watcher?.disconnect() // the reader asks again by the button
      control?.classList.remove("loading")
      toast(`Older entries did not load. ${/** @type {Error} */ (error).message}`)
    }
  }

  /**
   * Entries up to `seq` exist. A reader who looks at an old page is only told how many.
   * @param {number} seq
   */
  async came(seq) {
    if (seq <= this.total) return
    if (this.showsNewest() || this.catching) return this.catchUp(seq)
    this.note(seq - this.total, false)
    this.total = seq
    this.count()
  }

  /**
   * Entries up to `upto` exist: those after the last shown are fetched, once at a time.
   * @param {number} upto
   */
  catchUp(upto) {
    this.total = Math.max(this.total, upto)
    if (this.catching) {
      this.again = true
      return this.catching
    }
    this.catching = this.loadNewer().finally(() => {
      this.catching = undefined
      if (this.again && this.last < this.total) {
        this.again = false
        void this.catchUp(this.total)
      }
    })
    return this.catching
  }

  async loadNewer() {
    const follows = this.atBottom()
    const part = await getFragment(`${this.base}entries/?after=${this.last}`)
    const last = Number(part.querySelector("#newer")?.getAttribute("data-last"))
    const fresh = replaceKnown(part)
    document.getElementById("nothing")?.remove()
    this.append(fresh, follows)
    if (last > this.last) this.note(last - this.last, follows)
    this.last = Math.max(this.last, last)
    this.total = Math.max(this.total, this.last)
    this.count()
    if (follows) this.toBottom()
  }

  /**
   * @param {Element[]} fresh
   * @param {boolean} follows
   */
  append(fresh, follows) {
    for (const one of fresh) {
      const above = this.entries.lastElementChild
      if (above?.matches(".skipped") && one.matches(".skipped")) mergeQuiet(above, one)
      else this.entries.append(one)
      if (follows) one.classList.add("slid")
      writeMoments(one)
    }
  }

  /**
   * @param {number} count
   * @param {boolean} follows
   */
  note(count, follows) {
    if (follows && !document.hidden) return
    this.unseen += count
    const words = this.pill.querySelector("span")
    if (words) words.textContent = `${thin(this.unseen)} new`
    this.pill.hidden = false
  }

  /** Says what is shown of how much. */
  count() {
    const say = (/** @type {string} */ name, /** @type {number} */ value) => {
      const place = this.element.querySelector(`[data-${name}]`)
      if (place) place.textContent = thin(value)
    }
    const first = Number(document.getElementById("older")?.dataset.first) || 1
    say("shown-from", first)
    say("shown-to", this.last)
    say("total", this.total)
    const header = document.querySelector("[data-entries]")
    if (header instanceof HTMLElement) header.textContent = entries(this.total, header.dataset.above)
  }

  /**
   * Replaces an entry by the fresh one and keeps its place in view.
   * @param {number} seq
   */
  async whole(seq) {
    const part = await getFragment(`${this.base}entries/${seq}/`)
    const fresh = part.querySelector(`#e${seq}`) ?? part.firstElementChild
    const old = fresh ? document.getElementById(fresh.id) : null
    if (!fresh || !old) return
    if (old.classList.contains("cont")) fresh.classList.add("cont")
    writeMoments(fresh)
    replaceElement(old, fresh)
  }
}

/**
 * @param {number} total
 * @param {string | undefined} above what is inherited, of a branch
 */
function entries(total, above) {
  const own = total - Number(above ?? 0)
  const words = `${thin(own)}${above === undefined ? "" : " own"} ${own === 1 ? "entry" : "entries"}`
  return above === undefined ? words : `${words} of ${thin(total)}`
}

/**
 * Bookkeeping that goes on folds into the line above it.
 * @param {Element} above
 * @param {Element} fresh
 */
function mergeQuiet(above, fresh) {
  const list = above.querySelector("ul")
  list?.append(...fresh.querySelectorAll(":scope > ul > li"))
  above.setAttribute("data-last", fresh.getAttribute("data-last") ?? "")
  const words = above.querySelector("summary span")
  if (words && list) words.textContent = `${list.children.length} entries of bookkeeping`
}
