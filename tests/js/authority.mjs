/** A stand-in for the server's document: append, refuse, remember ids, catch up (D2, D6, D7, D11, R4). */
import { applyEdits, EditError } from "../../static/documents/applier.js"

/** @typedef {import("../../static/documents/peer.js").Batch} Batch */
/** @typedef {import("../../static/documents/peer.js").Event} Event */

const MAX_EDITS = 1000

export class Authority {
  /** @param {string} text */
  constructor(text, { memory = 1000 } = {}) {
    this.first = text
    this.text = text
    this.memory = memory
    /** @type {Event[]} */
    this.log = []
    /** @type {Map<string, number>} */
    this.ids = new Map()
    this.busy = 0
  }

  get revision() {
    return this.log.length
  }

  /**
   * One batch: accepted, or refused with the present revision. Only acceptances are remembered (R4).
   *
   * @param {number} actor
   * @param {Batch} batch
   * @returns {import("../../static/documents/peer.js").AcceptedFrame | import("../../static/documents/peer.js").RefusedFrame}
   */
  append(actor, { request_id, edits }) {
    if (this.busy > 0) {
      this.busy--
      return { type: "refused", request_id, error: { code: "unavailable", message: "Not now." } }
    }
    const key = `${actor}/${request_id}`
    const known = this.ids.get(key)
    if (known !== undefined) return { type: "accepted", request_id, revision: known }
    const refusal = this.refusal(edits)
    if (refusal) return { type: "refused", request_id, revision: this.revision, error: refusal }
    this.text = applyEdits(this.text, edits)
    this.log.push({ seq: this.log.length + 1, author: { id: actor }, request_id, edits })
    this.ids.set(key, this.revision)
    return { type: "accepted", request_id, revision: this.revision }
  }

  /** @param {Batch["edits"]} edits */
  refusal(edits) {
    if (edits.length < 1 || edits.length > MAX_EDITS) return { code: "too_many_edits", message: "" }
    try {
      if (applyEdits(this.text, edits) === "") return { code: "would_be_empty", message: "" }
      return null
    } catch (error) {
      if (!(error instanceof EditError)) throw error
      return { ...error.facts, message: error.message }
    }
  }

  /** @returns {import("../../static/documents/peer.js").SnapshotFrame} */
  snapshot() {
    return { type: "snapshot", seq: this.revision, state: { text: this.text } }
  }

  /**
   * Events after a revision, or a snapshot when it is too old or above the head.
   *
   * @param {number} after
   * @returns {import("../../static/documents/peer.js").Frame}
   */
  catchUp(after) {
    if (after > this.revision || this.revision - after > this.memory) return this.snapshot()
    return { type: "events", events: this.log.slice(after) }
  }

  fold() {
    return this.log.reduce((text, batch) => applyEdits(text, batch.edits), this.first)
  }
}
