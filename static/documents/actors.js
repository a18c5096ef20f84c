// Whose name and colour an actor has, as far as this page has heard. No DOM.

const HUES = 12

/**
 * The colour of an author, 1 to 12; 0 is nobody. Twin of `hue` in console/shown.py.
 * @param {number | null} actor
 */
export const hueOf = (actor) => (actor === null ? 0 : ((actor * 5) % HUES) + 1)

/** @typedef {{id: number, name?: string, kind?: string}} Author */

export class Actors {
  /** @type {Map<number, Author>} */
  #known = new Map()

  /** @param {Author | null | undefined} author */
  learn(author) {
    if (author?.name) this.#known.set(author.id, author)
  }

  /** @param {number | null} actor */
  nameOf(actor) {
    if (actor === null) return "somebody"
    return this.#known.get(actor)?.name ?? `actor ${actor}`
  }

  /**
   * People are shown solid, agents hatched.
   * @param {number | null} actor
   */
  isAgent(actor) {
    const kind = actor === null ? "person" : (this.#known.get(actor)?.kind ?? "person")
    return kind !== "person"
  }

  /**
   * The classes of everything that bears the author's colour.
   * @param {number | null} actor
   */
  classOf(actor) {
    return `${this.isAgent(actor) ? "ag " : ""}a${hueOf(actor)}`
  }
}
