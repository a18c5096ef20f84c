import { Behaviour } from "./behaviours.js"
import { cookieLine } from "./wishes.js"

/** The switch between light and dark. Going back to what the system wishes forgets the wish. */
export class Scheme extends Behaviour {
  connect() {
    this.on(this.element, "click", () => this.turn())
  }

  turn() {
    const root = document.documentElement
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
    const now = root.dataset.scheme || system
    const wished = now === "dark" ? "light" : "dark"
    if (wished === system) delete root.dataset.scheme
    else root.dataset.scheme = wished
    document.cookie = wished === system ? "scheme=; path=/; max-age=0; samesite=lax" : cookieLine("scheme", wished)
  }
}
