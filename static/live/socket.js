// The tab's one live connection, and the line that says when it is lost.

import { Behaviour, start } from "../console/behaviours.js"
import { clock } from "../console/times.js"
import { Client } from "./client.js"

const scheme = location.protocol === "https:" ? "wss:" : "ws:"
const client = new Client(() => new WebSocket(`${scheme}//${location.host}/live/`))

/** @type {Client["subscribe"]} */
export const subscribe = (stream, handlers) => client.subscribe(stream, handlers)
/** @type {Client["send"]} */
export const send = (frame) => client.send(frame)
/** @type {Client["ask"]} */
export const ask = (stream, after) => client.ask(stream, after)
/** @type {Client["onStatus"]} */
export const onStatus = (listener) => client.onStatus(listener)

const wake = () => document.hidden || client.wake()
for (const type of ["focus", "online", "pageshow"]) addEventListener(type, wake)
document.addEventListener("visibilitychange", wake)
addEventListener("pagehide", () => client.close())

/** What would be lost with the page, if anything: pages with unsaved work say it here. @type {() => string} */
let unsaved = () => ""

/** @param {() => string} says a sentence, or nothing when all is saved */
export function tellUnsaved(says) {
  unsaved = says
}

/** Says that the connection is lost, since when, and what is not saved. On .conn. */
class Connection extends Behaviour {
  connect() {
    this.stop = onStatus((status) => this.show(status))
  }

  disconnect() {
    this.stop?.()
  }

  /** @param {import("./client.js").Status} status */
  show(status) {
    document.documentElement.classList.toggle("offline", status.name === "offline" || status.name === "signed out")
    const words = sentence(status)
    if (this.element.textContent !== words) this.element.textContent = words
  }
}

/** @param {import("./client.js").Status} status */
function sentence({ name, since }) {
  if (name === "catching up") return "Catching up."
  if (name === "offline") return `Offline since ${clock(since)}. You read what was loaded. ${unsaved()}`.trim()
  if (name === "signed out") return `You are signed out. Sign in again to go on. ${unsaved()}`.trim()
  return ""
}

start({ connection: Connection })
