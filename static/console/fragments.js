// Putting parts rendered by the server into the page without moving what the reader looks at.

import { Idiomorph } from "../built/idiomorph.js"

/** @typedef {{open: Set<string>, shut: Set<string>}} Folds */

/**
 * Which folds of an element the reader has opened or shut, by their data-fold.
 * @param {Element} element
 * @returns {Folds}
 */
function folds(element) {
  const open = new Set()
  const shut = new Set()
  for (const one of element.querySelectorAll("details[data-fold]")) {
    const name = /** @type {HTMLElement} */ (one).dataset.fold ?? ""
    if (/** @type {HTMLDetailsElement} */ (one).open) open.add(name)
    else shut.add(name)
  }
  return { open, shut }
}

/**
 * Turns an element of the page into the fresh one. What stays is not made anew, so a press that has begun still counts, and
 * focus, folds and what somebody is typing stay as the reader left them.
 * @param {Element} old
 * @param {Element} fresh
 */
export function replaceElement(old, fresh) {
  const { open, shut } = folds(old)
  for (const one of fresh.querySelectorAll("details[data-fold]")) {
    const details = /** @type {HTMLDetailsElement} */ (one)
    const name = details.dataset.fold ?? ""
    if (open.has(name)) details.open = true
    if (shut.has(name)) details.open = false
  }
  if (old.classList.contains("at")) fresh.classList.add("at")
  Idiomorph.morph(old, fresh, {
    morphStyle: "outerHTML",
    callbacks: { beforeAttributeUpdated: (name, element) => name !== "value" || !isTypedIn(element) },
  })
}

/** @param {Element} element */
function isTypedIn(element) {
  const field = element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement
  return field && element.value !== element.defaultValue
}

/**
 * Replaces by id whatever of the fragment is already on the page; returns the rest in order.
 * @param {DocumentFragment} fragment
 * @returns {Element[]}
 */
export function replaceKnown(fragment) {
  const rest = []
  for (const fresh of [...fragment.children]) {
    const old = fresh.id ? document.getElementById(fresh.id) : null
    if (old) replaceElement(old, fresh)
    else rest.push(fresh)
  }
  return rest
}
