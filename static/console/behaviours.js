// Behaviours: small classes bound to elements by data-behaviour="name name". They connect when their element
// enters the page and disconnect when it leaves, so that replaced parts of a page need no extra call.

/** A behaviour of one element. Subclasses override what they need. */
export class Behaviour {
  /** @type {AbortController | undefined} */
  ended

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element
  }
  connect() {}
  disconnect() {}

  /**
   * Listens until the behaviour disconnects.
   * @param {EventTarget} target
   * @param {string} type
   * @param {(event: any) => void} heard
   * @param {AddEventListenerOptions} [options]
   */
  on(target, type, heard, options = {}) {
    this.ended ??= new AbortController()
    target.addEventListener(type, heard, { ...options, signal: this.ended.signal })
  }

  end() {
    this.ended?.abort()
    this.disconnect()
  }
}

/** @type {Map<string, typeof Behaviour>} */
const known = new Map()
/** @type {Map<Element, Map<string, Behaviour>>} */
const bound = new Map()

/** @param {Element} element */
function bind(element) {
  if (!(element instanceof HTMLElement)) return
  const here = bound.get(element) ?? new Map()
  for (const name of (element.dataset.behaviour ?? "").split(/\s+/)) {
    const kind = known.get(name)
    if (!kind || here.has(name)) continue
    const one = new kind(element)
    here.set(name, one)
    bound.set(element, here)
    one.connect()
  }
}

/** @param {Element} element */
function release(element) {
  for (const one of bound.get(element)?.values() ?? []) one.end()
  bound.delete(element)
}

/**
 * @param {Node} node
 * @param {(element: Element) => void} each
 */
function within(node, each) {
  if (!(node instanceof Element)) return
  if (node.matches("[data-behaviour]")) each(node)
  for (const inner of node.querySelectorAll("[data-behaviour]")) each(inner)
}

const watcher = new MutationObserver((changes) => {
  for (const change of changes) {
    const { target } = change
    if (change.type === "attributes" && target instanceof Element) {
      release(target) // it was turned into another element, or into the same one about something else
      bind(target)
    }
    for (const gone of change.removedNodes) within(gone, (e) => e.isConnected || release(e))
    for (const come of change.addedNodes) within(come, (e) => e.isConnected && bind(e))
  }
})

/**
 * Makes behaviours known and binds those already on the page. May be called by several modules.
 * @param {Record<string, typeof Behaviour>} behaviours
 */
export function start(behaviours) {
  for (const [name, kind] of Object.entries(behaviours)) known.set(name, kind)
  within(document.documentElement, bind)
  watcher.observe(document.documentElement, { attributeFilter: ["data-behaviour"], childList: true, subtree: true })
}

/**
 * The behaviour of that name on an element, if it is bound.
 * @param {Element | null} element
 * @param {string} name
 */
export function behaviourOf(element, name) {
  return element ? bound.get(element)?.get(name) : undefined
}
