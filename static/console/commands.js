// What can be done on this page: every visible button that says data-command. The palette lists them.

/** @typedef {import("./palette.js").Item} Item */

/**
 * @param {Document} page
 * @returns {Item[]}
 */
export function commandsOf(page) {
  /** @type {Item[]} */
  const items = []
  for (const element of page.querySelectorAll("[data-command]")) {
    if (!(element instanceof HTMLElement) || element.closest("dialog")) continue
    items.push({
      label: element.dataset.command ?? "",
      hint: element.dataset.key ?? element.dataset.hint ?? "",
      icon: (element.querySelector("use")?.getAttribute("href") ?? "#i-play").slice(1),
      press: () => (element.matches("input, textarea, summary") ? element.focus() : element.click()),
    })
  }
  return items
}

/**
 * The items whose label has every word asked for. Pure.
 * @template {{label: string}} T
 * @param {T[]} items
 * @param {string} asked
 * @returns {T[]}
 */
export function matching(items, asked) {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean)
  return items.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)))
}
