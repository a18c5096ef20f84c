// The CodeMirror view bound to the peer. No network: the page's loop sends what it gives and hands it what came.

import {
  EditorState,
  EditorView,
  Transaction,
  defaultKeymap,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  highlightSpecialChars,
  history,
  historyKeymap,
  keymap,
  lineNumbers,
  search,
  searchKeymap,
} from "../built/codemirror.js"
import { authors, setRuns } from "./authors.js"
import { fromCodePoints, runsOfView } from "./authorship.js"
import { caretsField, clearCarets, setCaret } from "./carets.js"
import { differences, toText } from "./changes.js"
import { inputRefused, inputRules } from "./input.js"
import { markdown } from "./markdown.js"
import * as peers from "./peer.js"
import { fromRevision, toConfirmed } from "./positions.js"
import { remote } from "./remote.js"
import { endFlash, markRead, unread, unreadField } from "./unread.js"

/**
 * @typedef {import("./actors.js").Actors} Actors
 * @typedef {import("./authorship.js").Run} Run
 * @typedef {{connection: string, who: import("./actors.js").Author, anchor: number, head: number, revision: number}} Person
 *
 * @typedef {object} Told what the editor tells its page
 * @property {() => void} changed the person changed the text
 * @property {() => void} moved the cursor, the text or what is unread is another
 * @property {(words: string) => void} refused an input was not taken
 */

/** How long a flash of an agent's edit lasts, its transition included. */
const FLASH_MS = 1_200

export class Editor {
  /** @type {peers.Peer} */
  #peer
  /** @type {ReturnType<typeof authors>} */
  #authors
  /** People who point at a revision that has not come yet. @type {Map<string, Person>} */
  #ahead = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #flash

  /**
   * @param {object} of
   * @param {HTMLElement} of.parent
   * @param {string} of.text
   * @param {number} of.revision
   * @param {number} of.actor
   * @param {string} of.name of this tab, unlike any other's
   * @param {boolean} of.canEdit
   * @param {string} of.nonce for the styles that CodeMirror adds (D14)
   * @param {Actors} of.actors
   * @param {Told} of.told
   */
  constructor({ parent, text, revision, actor, name, canEdit, nonce, actors, told }) {
    this.actors = actors
    this.told = told
    this.#peer = peers.createPeer({ actor, name, text, revision })
    const classOf = (/** @type {number | null} */ id) => actors.classOf(id)
    this.#authors = authors(actor, classOf)
    this.view = new EditorView({
      parent,
      dispatchTransactions: (transactions) => this.#dispatch(transactions),
      state: EditorState.create({
        doc: toText(text),
        extensions: [
          EditorState.lineSeparator.of("\n"),
          EditorView.cspNonce.of(nonce),
          EditorState.readOnly.of(!canEdit),
          EditorView.editable.of(canEdit),
          EditorView.contentAttributes.of({ "aria-label": "Text of the document", tabindex: "0", spellcheck: "true" }),
          inputRules,
          history(),
          lineNumbers(),
          this.#authors.extension,
          unread(classOf, (id) => actors.nameOf(id)),
          caretsField,
          highlightSpecialChars(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          highlightSelectionMatches(),
          EditorView.lineWrapping,
          search({ top: true }),
          markdown(toText(text)),
          keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
          EditorView.updateListener.of((update) => this.#updated(update)),
        ],
      }),
    })
  }

  get peer() {
    return this.#peer
  }

  get text() {
    return this.view.state.doc.toString()
  }

  /** @returns {readonly Run[]} */
  get runs() {
    return this.view.state.field(this.#authors.runs)
  }

  get unread() {
    return this.view.state.field(unreadField)
  }

  get carets() {
    return this.view.state.field(caretsField)
  }

  /** @param {peers.Frame} frame */
  receive(frame) {
    const out = peers.receive(this.#peer, frame)
    this.#peer = out.peer
    this.#show(out.steps)
    for (const [connection, person] of [...this.#ahead]) {
      this.#ahead.delete(connection)
      this.showPerson(person)
    }
  }

  /** The next batch to send, if one is due. */
  nextBatch() {
    return this.#taken(peers.nextBatch(this.#peer))
  }

  /** The batch that was answered "not now". */
  sendAgain() {
    return this.#taken(peers.sendAgain(this.#peer))
  }

  /** A connection began: the batch in flight, and after which revision to ask. */
  resume() {
    const out = peers.resume(this.#peer)
    this.#peer = out.peer
    return out
  }

  /**
   * @param {{peer: peers.Peer, batch: peers.Batch | null}} out
   */
  #taken({ peer, batch }) {
    this.#peer = peer
    return batch
  }

  /**
   * Makes the whole text another one, as if it had been typed: it is sent, and can be undone.
   * @param {string} text
   */
  replaceText(text) {
    const changes = differences(this.text, text)
    this.view.dispatch({ changes, userEvent: "input.restore", scrollIntoView: false })
  }

  /**
   * The server's account of who wrote what at a revision, in code points.
   * @param {number} revision
   * @param {string} text at that revision
   * @param {readonly (readonly [number, number])[]} runs
   * @returns {boolean} false when the text has moved on too far: ask again
   */
  setAuthors(revision, text, runs) {
    const value = runsOfView(this.#peer, revision, fromCodePoints(text, runs))
    if (value) this.view.dispatch({ effects: setRuns.of(value) })
    return value !== null
  }

  /**
   * One person's cursor, as it came.
   * @param {Person} person
   */
  showPerson(person) {
    const { connection, who } = person
    const anchor = fromRevision(this.#peer, person.anchor, person.revision)
    const head = fromRevision(this.#peer, person.head, person.revision)
    if (anchor === null || head === null) {
      if (person.revision > this.#peer.confirmed.revision) this.#ahead.set(connection, person)
      return
    }
    const caret = {
      connection,
      actor: who.id,
      name: who.name ?? this.actors.nameOf(who.id),
      classes: this.actors.classOf(who.id),
      anchor,
      head,
    }
    this.view.dispatch({ effects: setCaret.of({ connection, caret }) })
  }

  /** @param {string} connection */
  hidePerson(connection) {
    this.#ahead.delete(connection)
    if (this.carets.has(connection)) this.view.dispatch({ effects: setCaret.of({ connection, caret: null }) })
  }

  hidePeople() {
    this.#ahead.clear()
    this.view.dispatch({ effects: clearCarets.of(null) })
  }

  /** The person's own selection, as others can read it. */
  get selection() {
    const { anchor, head } = this.view.state.selection.main
    return {
      anchor: toConfirmed(this.#peer, anchor),
      head: toConfirmed(this.#peer, head),
      revision: this.#peer.confirmed.revision,
    }
  }

  /**
   * Scrolls to a line and puts the cursor there.
   * @param {number} number from one
   */
  goToLine(number) {
    const { doc } = this.view.state
    const line = doc.line(Math.max(1, Math.min(number, doc.lines)))
    this.#goTo(line.from)
  }

  /** Scrolls to the next unread passage after the cursor, else to the first one, and marks it as read. */
  goToUnread() {
    const { head } = this.view.state.selection.main
    const passages = this.unread
    const next = passages.find((passage) => passage.from > head) ?? passages[0]
    if (!next) return
    this.#goTo(next.from)
    this.view.dispatch({ effects: markRead.of({ from: next.from, to: next.to }) })
  }

  readAll() {
    this.view.dispatch({ effects: markRead.of({ from: 0, to: this.view.state.doc.length }) })
  }

  /** @param {number} at */
  #goTo(at) {
    this.view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) })
    this.view.focus()
  }

  destroy() {
    clearTimeout(this.#flash)
    this.view.destroy()
  }

  /** @param {readonly Transaction[]} transactions */
  #dispatch(transactions) {
    this.view.update(transactions)
    const local = transactions.filter((transaction) => transaction.docChanged && !transaction.annotation(remote))
    if (!local.length) return
    const changes = local.slice(1).reduce((all, transaction) => all.compose(transaction.changes), local[0].changes)
    const out = peers.localChange(this.#peer, changes)
    this.#peer = out.peer
    this.#show(out.steps)
    this.told.changed()
  }

  /** @param {peers.Step[]} steps */
  #show(steps) {
    if (!steps.length) return
    let { state } = this.view
    const transactions = []
    for (const step of steps) {
      this.actors.learn(step.event?.author)
      const annotations = [remote.of(step), Transaction.addToHistory.of(false)]
      const transaction = state.update({ changes: step.change, annotations, filter: false })
      transactions.push(transaction)
      state = transaction.state
    }
    this.view.dispatch(transactions)
    if (this.unread.some((passage) => passage.flash)) this.#flashLater()
  }

  #flashLater() {
    clearTimeout(this.#flash)
    this.#flash = setTimeout(() => this.view.dispatch({ effects: endFlash.of(null) }), FLASH_MS)
  }

  /** @param {import("../built/codemirror.js").ViewUpdate} update */
  #updated(update) {
    for (const transaction of update.transactions) {
      for (const effect of transaction.effects) if (effect.is(inputRefused)) this.told.refused(effect.value)
    }
    const told = update.startState.field(unreadField) !== update.state.field(unreadField)
    if (update.docChanged || update.selectionSet || update.focusChanged || told) this.told.moved()
  }
}
