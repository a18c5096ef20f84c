// The page of approvals.

import { subscribe } from "../live/socket.js"
import { Behaviour, start } from "./behaviours.js"
import { Decides } from "./deciding.js"
import { replaceKnown } from "./fragments.js"
import { writeMoments } from "./moments.js"
import { getFragment } from "./requests.js"
import { atMostEvery } from "./throttle.js"
import { toast } from "./toasts.js"

/** The queue is read again at most so often, however busy the team is. */
const REST_MS = 400

/**
 * Keeps the queue as it is: the team's stream says that something changed, the server renders it. An approval that somebody is
 * writing a comment for stays where it is until they have done.
 */
class Queue extends Behaviour {
  parts = atMostEvery(() => this.read(), REST_MS)

  connect() {
    this.stop = subscribe("team", { onRows: () => this.parts(), onSnapshot: () => {}, onError: (error) => toast(error.message) })
    this.on(this.element, "decided", () => this.parts())
    this.on(this.element, "focusout", () => this.late && setTimeout(() => this.parts()))
  }

  disconnect() {
    this.stop?.()
  }

  /** A change came while somebody was typing. */
  late = false

  typing() {
    const field = document.activeElement
    return field instanceof HTMLInputElement && this.element.contains(field) && field.value !== field.defaultValue
  }

  async read() {
    this.late = this.typing()
    if (this.late) return
    try {
      const fragment = await getFragment(this.element.dataset.source ?? "")
      for (const one of fragment.children) writeMoments(one)
      replaceKnown(fragment)
    } catch (error) {
      toast(/** @type {Error} */ (error).message)
    }
  }
}

start({ approvals: Queue, decides: Decides })
