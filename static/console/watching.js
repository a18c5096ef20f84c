import { subscribe } from "../live/socket.js"
import { Behaviour, behaviourOf } from "./behaviours.js"
import { Tally } from "./tally.js"
import { atMostEvery } from "./throttle.js"

/** A busy tree changes many times a second; its lines are read again at most so often. */
const REST_MS = 1_000
/** More changed lines than this are read as new ones only; the server refuses longer lists. */
const MOST = 200

/** Follows a root: rows say which conversations changed, the server renders their lines. Beside tally. */
export class Watching extends Behaviour {
  /** @type {Set<number>} */
  changed = new Set()
  read = atMostEvery(() => this.readAgain(), REST_MS)
  opened = false

  connect() {
    this.stop = subscribe(`root:${this.element.dataset.root}`, {
      onSnapshot: () => {
        this.element.dataset.live = "1"
        if (this.opened) this.read()
        this.opened = true
      },
      onRows: (rows) => {
        for (const row of rows) if (typeof row.conversation === "number") this.changed.add(row.conversation)
        this.read()
      },
    })
  }

  disconnect() {
    this.stop?.()
  }

  async readAgain() {
    const tally = behaviourOf(this.element, "tally")
    const changed = [...this.changed].slice(0, MOST)
    this.changed.clear()
    if (tally instanceof Tally) await tally.refresh(changed).catch(() => undefined)
  }
}
