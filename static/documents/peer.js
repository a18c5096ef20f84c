/**
 * One reader's copy of a live document (D12, D13), pure: no network, no timer, no DOM. Each function takes a peer and
 * returns a new one. What is shown is `confirmed`, then the one batch in flight, then what was typed since.
 *
 * The host sends what `nextBatch`, `resume` and `sendAgain` return, shows every step, and subscribes again after
 * `confirmed.revision` when `gap` is set or a heartbeat names a higher head.
 */
import { ChangeSet } from "../built/codemirror.js"
import { applyChanges, correction, differences, located, quoted, rounded, toText } from "./changes.js"

/**
 * @typedef {import("./applier.js").Edit} Edit
 *
 * @typedef {{id: number, name?: string, kind?: string}} Author
 * @typedef {{seq: number, author: Author, request_id?: string | null, edits: Edit[]}} Event a recorded batch
 * @typedef {{code: string, message: string, [fact: string]: unknown}} Refusal
 *
 * @typedef {{type: "events", events: Event[]}} EventsFrame
 * @typedef {{type: "snapshot", seq: number, state: {text: string}}} SnapshotFrame
 * @typedef {{type: "accepted", request_id: string, revision: number}} AcceptedFrame
 * @typedef {{type: "refused", request_id: string, revision?: number, error: Refusal}} RefusedFrame
 * @typedef {EventsFrame | SnapshotFrame | AcceptedFrame | RefusedFrame} Frame what the server says of one document
 *
 * @typedef {{request_id: string, edits: Edit[]}} Batch
 *
 * @typedef {object} Flight the batch that was quoted and is not in `confirmed` yet
 * @property {string} request_id stays the same however often the change is quoted: whichever copy is accepted first counts
 * @property {ChangeSet} changes on `confirmed`
 * @property {"new" | "sent" | "refused" | "postponed" | "accepted"} state
 * @property {Edit[]} edits as they were last quoted
 * @property {number} base the revision they were quoted on
 * @property {number} revision of the acceptance or the refusal
 *
 * @typedef {object} Peer
 * @property {number} actor whose batches are this reader's own, if their ids are too
 * @property {string} name of this tab: begins its request ids, and no other tab has it
 * @property {number} batches how many were begun
 * @property {{text: string, revision: number}} confirmed
 * @property {Trod[]} trail the last changes of `confirmed`, for what others say of an older one
 * @property {Flight | null} flight
 * @property {ChangeSet} local typed since, on `confirmed` and the flight
 * @property {{snapshot: SnapshotFrame, events: Event[]} | null} held until the batch in flight has its answer
 * @property {Refusal | null} stuck a refusal that no fresh quote cures: nothing is sent any more
 * @property {boolean} gap an event is missing
 *
 * @typedef {{revision: number, changes: ChangeSet, author: Author | null}} Trod how `confirmed` came to a revision
 * @typedef {{change: ChangeSet, event: Event | null}} Step what the view must show, and whose it is (null: of many)
 */

/** Refusals that quoting the same change on the present text can cure. */
const REQUOTED = new Set(["absent", "ambiguous", "would_be_empty"])

/** Refusals (503) that mean "not now", or "nobody knows": the batch is sent again unchanged, after a wait. */
const POSTPONED = new Set(["busy", "unavailable", "outcome_unknown"])

/** Changes of `confirmed` that are remembered: people point at the text of some seconds ago, hardly of more edits ago. */
const TRAIL = 200

/** What a view gets that became empty: an empty document could never be edited again (D6). */
const LINE_BREAK = "\n"

/**
 * @param {{actor: number, name: string, text: string, revision: number}} of
 * @returns {Peer}
 */
export function createPeer({ actor, name, text, revision }) {
  return {
    actor,
    name,
    batches: 0,
    confirmed: { text, revision },
    trail: [],
    flight: null,
    local: ChangeSet.empty(text.length),
    held: null,
    stuck: null,
    gap: false,
  }
}

/** @param {Peer} peer */
export const viewText = (peer) => applyChanges(textUnderLocal(peer), peer.local)

/** @param {Peer} peer */
export const isSaved = (peer) => !peer.flight && peer.local.empty

/**
 * How many places of the text hold changes that are not saved.
 *
 * @param {Peer} peer
 */
export function countUnsaved(peer) {
  let count = 0
  const changes = peer.flight ? peer.flight.changes.compose(peer.local) : peer.local
  changes.iterChangedRanges(() => count++)
  return count
}

/** @param {Peer} peer */
const textUnderLocal = (peer) =>
  peer.flight ? applyChanges(peer.confirmed.text, peer.flight.changes) : peer.confirmed.text

/**
 * The user changed the view. The steps are what must be shown on top of it: characters that no document can hold are
 * replaced, and an empty view gets a line break.
 *
 * @param {Peer} peer
 * @param {ChangeSet} changes of the view
 * @returns {{peer: Peer, steps: Step[]}}
 */
export function localChange(peer, changes) {
  const whole = rounded(viewText(peer), changes)
  const corrected = correction(whole)
  const local = peer.local.compose(corrected ? whole.compose(corrected) : whole)
  return neverEmpty({ ...peer, local }, corrected ? [{ change: corrected, event: null }] : [])
}

/**
 * The next batch to send: null while one waits for its answer, or when nothing was typed.
 *
 * @param {Peer} peer
 * @returns {{peer: Peer, batch: Batch | null}}
 */
export function nextBatch(peer) {
  const { confirmed } = peer
  if (peer.held || peer.stuck) return { peer, batch: null }
  if (peer.flight) {
    // A refused change is quoted again alone and under its id, once what refused it has been read (D13).
    if (peer.flight.state !== "refused" || confirmed.revision < peer.flight.revision) return { peer, batch: null }
    if (applyChanges(confirmed.text, peer.flight.changes) !== "") return quotedFlight(peer, peer.flight)
    // A change that would leave nothing of the text may join the next batch: it types nothing, so it types nothing twice.
    peer = { ...peer, flight: null, local: peer.flight.changes.compose(peer.local) }
  }
  if (applyChanges(confirmed.text, peer.local) === confirmed.text) {
    return { peer: { ...peer, local: ChangeSet.empty(confirmed.text.length) }, batch: null }
  }
  /** @type {Flight} */
  const flight = {
    request_id: `${peer.name}-${peer.batches}`,
    changes: peer.local,
    state: "new",
    edits: [],
    base: confirmed.revision,
    revision: 0,
  }
  const local = ChangeSet.empty(peer.local.newLength)
  return quotedFlight({ ...peer, batches: peer.batches + 1, local }, flight)
}

/**
 * @param {Peer} peer
 * @param {Flight} flight
 * @returns {{peer: Peer, batch: Batch | null}}
 */
function quotedFlight(peer, flight) {
  const edits = quoted(peer.confirmed.text, flight.changes)
  if (edits.length === 0) return { peer: { ...peer, flight: null }, batch: null }
  return sent(peer, { ...flight, edits, base: peer.confirmed.revision })
}

/**
 * @param {Peer} peer
 * @param {Flight} flight
 * @returns {{peer: Peer, batch: Batch}}
 */
function sent(peer, flight) {
  const batch = { request_id: flight.request_id, edits: flight.edits }
  return { peer: { ...peer, flight: { ...flight, state: "sent" } }, batch }
}

/**
 * The wait after a "not now" is over: the same batch, unchanged.
 *
 * @param {Peer} peer
 * @returns {{peer: Peer, batch: Batch | null}}
 */
export function sendAgain(peer) {
  return peer.flight?.state === "postponed" ? sent(peer, peer.flight) : { peer, batch: null }
}

/**
 * A connection began: what was in flight goes out again under its id, before the catch-up is asked for (D13).
 *
 * @param {Peer} peer
 * @returns {{peer: Peer, batch: Batch | null, after: number}}
 */
export function resume(peer) {
  const after = peer.confirmed.revision
  peer = { ...peer, held: null, gap: false }
  if (!peer.flight || peer.flight.state === "accepted" || peer.stuck) return { peer, batch: null, after }
  return { ...sent(peer, peer.flight), after }
}

/**
 * A frame came from the server. Each step is to be shown in the view that the one before it left.
 *
 * @param {Peer} peer
 * @param {Frame} frame
 * @returns {{peer: Peer, steps: Step[]}}
 */
export function receive(peer, frame) {
  switch (frame.type) {
    case "events":
      return receiveEvents(peer, frame.events)
    case "snapshot":
      if (!awaitsAnswer(peer)) return adopt(peer, frame)
      return { peer: { ...peer, held: { snapshot: frame, events: [] } }, steps: [] }
    case "accepted":
      return peer.flight?.request_id === frame.request_id
        ? receiveAcceptance(peer, peer.flight, frame)
        : unchanged(peer)
    case "refused":
      return peer.flight?.request_id === frame.request_id ? receiveRefusal(peer, peer.flight, frame) : unchanged(peer)
  }
}

/**
 * Whether the server may have recorded the batch in flight without having said so. One that was postponed goes out again,
 * so it has an answer to come too.
 *
 * @param {Peer} peer
 */
const awaitsAnswer = (peer) => peer.flight?.state === "sent" || peer.flight?.state === "postponed"

/**
 * @param {Peer} peer
 * @returns {{peer: Peer, steps: Step[]}}
 */
const unchanged = (peer) => ({ peer, steps: [] })

/**
 * @param {Peer} peer
 * @param {Flight} flight
 * @param {AcceptedFrame} frame
 * @returns {{peer: Peer, steps: Step[]}}
 */
function receiveAcceptance(peer, flight, frame) {
  /** @type {Peer} */
  const accepted = { ...peer, flight: { ...flight, state: "accepted", revision: frame.revision } }
  if (frame.revision > peer.confirmed.revision) return releaseHeld(accepted) // its event is still to come
  const back = takeBack(accepted, flight)
  return after(back, releaseHeld(back.peer))
}

/**
 * @param {Peer} peer
 * @param {Flight} flight
 * @param {RefusedFrame} frame
 * @returns {{peer: Peer, steps: Step[]}}
 */
function receiveRefusal(peer, flight, { error, revision = peer.confirmed.revision }) {
  if (flight.state !== "sent") return unchanged(peer)
  if (POSTPONED.has(error.code)) return unchanged({ ...peer, flight: { ...flight, state: "postponed" } })
  if (revision < flight.base) return unchanged(peer) // the answer to an older quote
  const stuck = REQUOTED.has(error.code) ? null : error
  return releaseHeld({ ...peer, stuck, flight: { ...flight, state: "refused", revision } })
}

/**
 * The batch in flight has its answer: the snapshot that waited for it is adopted.
 *
 * @param {Peer} peer
 * @returns {{peer: Peer, steps: Step[]}}
 */
function releaseHeld(peer) {
  if (!peer.held) return unchanged(peer)
  const { snapshot, events } = peer.held
  const first = adopt({ ...peer, held: null }, snapshot)
  return after(first, receiveEvents(first.peer, events))
}

/**
 * @param {{steps: Step[]}} first
 * @param {{peer: Peer, steps: Step[]}} then
 */
const after = (first, then) => ({ peer: then.peer, steps: [...first.steps, ...then.steps] })

/**
 * @param {Peer} peer
 * @param {Event[]} events
 * @returns {{peer: Peer, steps: Step[]}}
 */
function receiveEvents(peer, events) {
  if (peer.held) return unchanged({ ...peer, held: { ...peer.held, events: [...peer.held.events, ...events] } })
  /** @type {Step[]} */
  const steps = []
  for (const event of events) {
    if (event.seq <= peer.confirmed.revision) continue
    if (event.seq > peer.confirmed.revision + 1) return { peer: { ...peer, gap: true }, steps } // R3
    const step = receiveEvent(peer, event)
    peer = step.peer
    steps.push(...step.steps)
  }
  return { peer, steps }
}

/**
 * @param {Peer} peer
 * @param {Event} event
 * @returns {{peer: Peer, steps: Step[]}}
 */
function receiveEvent(peer, event) {
  const { changes, text } = located(peer.confirmed.text, event.edits)
  const trail = trod(peer, event.seq, changes, event.author)
  /** @type {Peer} */
  const next = { ...peer, confirmed: { text, revision: event.seq }, trail }
  const own = peer.flight !== null && event.author.id === peer.actor && event.request_id === peer.flight.request_id
  if (!own) return rebase(next, changes, event)
  // The own batch came back. Where it matched elsewhere than it was typed, the difference is a remote change.
  const shown = textUnderLocal(peer)
  const landed = { ...next, flight: null }
  return shown === text ? unchanged(landed) : rebase(landed, differences(shown, text), event)
}

/**
 * @param {Peer} peer
 * @param {number} revision
 * @param {ChangeSet} changes
 * @param {Author | null} author
 * @returns {Trod[]}
 */
function trod(peer, revision, changes, author) {
  return [...peer.trail.slice(1 - TRAIL), { revision, changes, author }]
}

/**
 * Puts what is not confirmed on top of a change of `confirmed`, which the view then shows where it still applies.
 *
 * @param {Peer} peer
 * @param {ChangeSet} change
 * @param {Event | null} event
 * @returns {{peer: Peer, steps: Step[]}}
 */
function rebase(peer, change, event) {
  let { flight, local } = peer
  if (flight) {
    const changes = flight.changes.map(change)
    change = change.map(flight.changes, true)
    flight = { ...flight, changes }
  }
  const moved = local.map(change)
  change = change.map(local, true)
  return neverEmpty({ ...peer, flight, local: moved }, change.empty ? [] : [{ change, event }])
}

/**
 * @param {Peer} peer
 * @param {SnapshotFrame} snapshot
 * @returns {{peer: Peer, steps: Step[]}}
 */
function adopt(peer, { seq, state }) {
  const inside = peer.flight?.state === "accepted" && peer.flight.revision <= seq
  const before = inside ? textUnderLocal(peer) : peer.confirmed.text
  const changes = differences(before, state.text)
  const trail = inside ? [] : trod(peer, seq, changes, null)
  const confirmed = { text: state.text, revision: seq }
  return rebase({ ...peer, gap: false, confirmed, trail, flight: inside ? null : peer.flight }, changes, null)
}

/**
 * The batch was accepted at or below `confirmed`, but its event was never seen: a snapshot held it. So the view shows
 * it twice, and the copy on top goes.
 *
 * @param {Peer} peer
 * @param {Flight} flight
 * @returns {{peer: Peer, steps: Step[]}}
 */
function takeBack(peer, flight) {
  const copy = flight.changes.invert(toText(peer.confirmed.text))
  return rebase({ ...peer, flight: null }, copy, null)
}

/**
 * A view that became empty, by typing or by rebasing, gets a line break as if it had been typed.
 *
 * @param {Peer} peer
 * @param {Step[]} steps
 * @returns {{peer: Peer, steps: Step[]}}
 */
function neverEmpty(peer, steps) {
  if (peer.local.newLength > 0) return { peer, steps }
  const fill = ChangeSet.of({ from: 0, insert: toText(LINE_BREAK) }, 0)
  return { peer: { ...peer, local: peer.local.compose(fill) }, steps: [...steps, { change: fill, event: null }] }
}
