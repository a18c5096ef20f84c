import { subscribe } from "../live/socket.js"
import { ATTACHMENTS } from "./attaching.js"
import { Behaviour, behaviourOf } from "./behaviours.js"
import { Flow } from "./flow.js"
import { replaceKnown } from "./fragments.js"
import { writeMoments } from "./moments.js"
import { getFragment } from "./requests.js"
import { atMostEvery } from "./throttle.js"
import { thin } from "./times.js"
import { toast } from "./toasts.js"

/** What changes as a whole is read again at most so often: a busy run changes its state many times a second. */
const REST_MS = 400

/** Follows a conversation: the socket says that something is there, the server renders it. Beside flow, on #flow. */
export class Following extends Behaviour {
  number = this.element.dataset.conversation ?? ""
  told = ""
  /** Somebody asked something since the lists of prompts were read. */
  asked = false
  version = Number(this.element.dataset.version)
  draft = /** @type {HTMLElement} */ (this.element.querySelector("#draft"))
  parts = atMostEvery(() => this.readParts(), REST_MS)

  connect() {
    const flow = this.flow()
    this.stop = subscribe(`conversation:${this.number}`, {
      after: flow?.total ?? 0,
      onEvents: (events) => this.came(events.at(-1)?.seq ?? 0),
      onSnapshot: (frame) => this.came(frame.seq),
      onState: (state, frame) => this.changed(state, frame.version),
      onError: (error) => toast(error.message),
    })
  }

  disconnect() {
    this.stop?.()
  }

  lastPrompt() {
    return [...this.element.querySelectorAll("#entries .prompt")].at(-1)?.id
  }

  flow() {
    const flow = behaviourOf(this.element, "flow")
    return flow instanceof Flow ? flow : undefined
  }

  /** @param {number} seq */
  async came(seq) {
    const before = this.lastPrompt()
    try {
      await this.flow()?.came(seq)
      if (this.lastPrompt() !== before) {
        this.asked = true
        this.parts()
      }
    } catch (error) {
      toast(`New entries did not load. ${/** @type {Error} */ (error).message}`)
    }
  }

  /**
   * The draft stands in the page as it comes; the rest is rendered by the server when it differs.
   * @param {any} state
   * @param {number} version
   */
  changed(state, version) {
    this.element.dataset.live = "1"
    this.showDraft(state.draft)
    document.dispatchEvent(new CustomEvent(ATTACHMENTS, { detail: state.attachments ?? [] }))
    const rest = JSON.stringify({ ...state, draft: null })
    const first = this.told === ""
    this.told = rest
    if (first ? version > this.version : rest !== this.before) this.parts()
    this.before = rest
  }

  /** @param {{text: string, thinking: number, calls: string[]} | null | undefined} draft */
  showDraft(draft) {
    const follows = this.flow()?.atBottom()
    write(this.draft.querySelector(".draft-text"), draft?.text ?? "")
    write(this.draft.querySelector(".draft-doing"), draft ? doing(draft) : "")
    this.draft.hidden = !draft
    if (draft && follows) this.flow()?.toBottom()
  }

  async readParts() {
    try {
      const asked = this.asked ? "?prompts=1" : ""
      this.asked = false
      const fragment = await getFragment(`/conversations/${this.number}/parts/${asked}`)
      for (const one of fragment.children) writeMoments(one)
      const follows = this.flow()?.atBottom()
      replaceKnown(fragment)
      if (follows) this.flow()?.toBottom()
    } catch (error) {
      toast(/** @type {Error} */ (error).message)
    }
  }
}

/**
 * What the model does beside writing: it thinks, or prepares calls.
 * @param {{thinking: number, calls: string[]}} draft
 */
function doing({ thinking, calls }) {
  const thought = thinking ? `thought ${thin(thinking)} characters` : ""
  const called = calls.length ? `calling ${calls.join(", ")}` : ""
  return [thought, called].filter(Boolean).join(", ")
}

/**
 * @param {Element | null} place
 * @param {string} words
 */
function write(place, words) {
  if (place && place.textContent !== words) place.textContent = words
}
