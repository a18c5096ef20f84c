// The loop around the editor: sends what the peer gives, one batch at a time, and hands it what the socket brings. The
// peer is either pushing or pulling; time and the network are here.

import { Editor } from "./editor.js"

/** Typing is gathered this long before a batch goes out: a word pasted or a key held is one, and nobody feels it. */
const GATHER_MS = 40

/** The pause after "not now". */
const AGAIN_MS = 1_500

/**
 * @typedef {{id: number, title: string, revision: number, actor: number, name: string, can_edit: boolean, root: number}} Boot
 * @typedef {import("./peer.js").Event} Event
 *
 * @typedef {object} Told what the loop tells its page
 * @property {(editor: Editor) => void} opened the text is here
 * @property {() => void} updated the text, its state or the cursor may be another
 * @property {(events: Event[]) => void} recorded
 * @property {() => void} unattributed text came whose authors are not known
 * @property {(frame: any) => void} presence
 * @property {(frame: any) => void} refusal of somebody else's batch
 * @property {(words: string) => void} refused an input was not taken
 * @property {(error: {code: string, message: string}) => void} ended the document cannot be read any more
 */

export class Loop {
  /** @type {Editor | null} */
  editor = null
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #gather
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #again

  /**
   * @param {object} of
   * @param {Boot} of.boot
   * @param {HTMLElement} of.parent
   * @param {string} of.nonce
   * @param {import("./actors.js").Actors} of.actors
   * @param {Pick<import("../live/client.js").Client, "subscribe" | "send" | "ask">} of.socket
   * @param {Told} of.told
   */
  constructor({ boot, parent, nonce, actors, socket, told }) {
    this.boot = boot
    this.parent = parent
    this.nonce = nonce
    this.actors = actors
    this.socket = socket
    this.told = told
    this.stream = `document:${boot.id}`
  }

  start() {
    this.stop = this.socket.subscribe(this.stream, {
      onConnect: () => this.#connected(),
      onSnapshot: (frame) => this.#snapshot(frame),
      onEvents: (events) => this.#events(/** @type {any} */ (events)),
      onAnswer: (frame) => this.#receive(frame),
      onPresence: (frame) => this.told.presence(frame),
      onRefusal: (frame) => this.told.refusal(frame),
      onError: (error) => this.told.ended(error),
    })
  }

  /** The person changed the text: it goes out in a moment, unless a batch is on its way. */
  changed() {
    this.#gather ??= setTimeout(() => this.#send(), GATHER_MS)
    this.told.updated()
  }

  /** @returns {number | undefined} */
  #connected() {
    if (!this.editor) return undefined
    const { batch, after } = this.editor.resume()
    this.#post(batch)
    return after
  }

  /** @param {import("../live/cursor.js").SnapshotFrame} frame */
  #snapshot(frame) {
    if (this.editor) {
      this.#receive({ type: "snapshot", seq: frame.seq, state: frame.state })
      this.told.unattributed()
      return
    }
    this.editor = new Editor({
      parent: this.parent,
      text: frame.state.text,
      revision: frame.seq,
      actor: this.boot.actor,
      name: crypto.randomUUID(),
      canEdit: this.boot.can_edit,
      nonce: this.nonce,
      actors: this.actors,
      told: {
        changed: () => this.changed(),
        moved: () => this.told.updated(),
        refused: (words) => this.told.refused(words),
      },
    })
    this.told.opened(this.editor)
    this.told.updated()
  }

  /** @param {Event[]} events */
  #events(events) {
    for (const event of events) this.actors.learn(event.author)
    this.#receive({ type: "events", events })
    this.told.recorded(events)
  }

  /** @param {import("./peer.js").Frame} frame */
  #receive(frame) {
    const { editor } = this
    if (!editor) return
    editor.receive(frame)
    const { gap, flight, confirmed } = editor.peer
    if (gap) this.socket.ask(this.stream, confirmed.revision)
    if (flight?.state === "postponed") this.#sendLater()
    else this.#send()
    this.told.updated()
  }

  #send() {
    clearTimeout(this.#gather)
    this.#gather = undefined
    this.#post(this.editor?.nextBatch() ?? null)
    this.told.updated()
  }

  #sendLater() {
    this.#again ??= setTimeout(() => {
      this.#again = undefined
      this.#post(this.editor?.sendAgain() ?? null)
    }, AGAIN_MS)
  }

  /**
   * What cannot be sent now goes out when a connection begins: the peer holds it.
   * @param {import("./peer.js").Batch | null} batch
   */
  #post(batch) {
    if (batch) this.socket.send({ op: "edit", document: this.boot.id, ...batch })
  }
}
