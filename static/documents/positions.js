// Where a place of one text lies in another: what this reader sees holds typing that others do not have yet, and what
// they say of the text is some revisions old. Pure; offsets are UTF-16 units, as presence is on the wire (D14).

/** @typedef {import("./peer.js").Peer} Peer */

/**
 * Where a place of the view lies in `confirmed`: what others can make something of.
 * @param {Peer} peer
 * @param {number} at
 */
export function toConfirmed(peer, at) {
  const below = peer.local.invertedDesc.mapPos(at, -1)
  return peer.flight ? peer.flight.changes.invertedDesc.mapPos(below, -1) : below
}

/**
 * Where a place of the text at `revision` lies in the view; null when nothing is known of that revision (yet).
 * @param {Peer} peer
 * @param {number} at
 * @param {number} revision
 */
export function fromRevision(peer, at, revision) {
  const { trail, confirmed } = peer
  const behind = confirmed.revision - revision
  if (behind < 0) return null
  let place = at
  if (behind > 0) {
    const first = trail.findIndex((trod) => trod.revision === revision + 1)
    if (first < 0) return null
    for (const { changes } of trail.slice(first)) place = changes.mapPos(Math.min(place, changes.length), 1)
  }
  place = Math.min(place, confirmed.text.length)
  if (peer.flight) place = peer.flight.changes.mapPos(place, 1)
  return peer.local.mapPos(place, 1)
}
