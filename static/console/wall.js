import { onStatus } from "../live/socket.js"
import { Behaviour } from "./behaviours.js"
import { clock } from "./times.js"

const EVERY_MS = 1_000

/** The head of the wall: the time, and whether what stands below is live. It never looks live when it is not. */
export class Wall extends Behaviour {
  clockPlace = this.element.querySelector(".wall-clock")
  late = this.element.querySelector(".wall-late")

  connect() {
    this.tick()
    this.timer = setInterval(() => this.tick(), EVERY_MS)
    this.stop = onStatus((status) => this.show(status))
  }

  disconnect() {
    clearInterval(this.timer)
    this.stop?.()
  }

  tick() {
    if (this.clockPlace) this.clockPlace.textContent = clock(new Date())
  }

  /** @param {import("../live/client.js").Status} status */
  show(status) {
    const live = status.name === "live"
    this.element.classList.toggle("stale", !live)
    if (this.late) this.late.textContent = live ? "" : words(status)
  }
}

/** @param {import("../live/client.js").Status} status */
function words(status) {
  if (status.name === "signed out") return "Signed out: sign in again on this screen"
  if (status.name === "connecting") return "Connecting"
  return `Catching up, nothing new since ${clock(status.since)}`
}
