// Who wrote what, as runs over a text (D15). Pure. The server's account comes in code points when the page opens; from
// then on each change of the view is folded here, in UTF-16 units, until the page is opened again.

import { ChangeSet } from "../built/codemirror.js"

/**
 * @typedef {{actor: number | null, length: number}} Run null: nobody knows, until the server is asked again
 * @typedef {import("./peer.js").Peer} Peer
 */

/**
 * The server's runs over its text, in UTF-16 units. What they do not cover has no author.
 * @param {string} text
 * @param {readonly (readonly [number, number])[]} runs actor and length in code points
 * @returns {Run[]}
 */
export function fromCodePoints(text, runs) {
  /** @type {Run[]} */
  const units = []
  let at = 0
  for (const [actor, length] of runs) {
    const end = afterCodePoints(text, at, length)
    push(units, actor, end - at)
    at = end
  }
  push(units, null, text.length - at)
  return units
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} count code points
 */
function afterCodePoints(text, at, count) {
  for (; count > 0 && at < text.length; count--) at += isPair(text, at) ? 2 : 1
  return at
}

/**
 * @param {string} text
 * @param {number} at
 */
const isPair = (text, at) => (text.charCodeAt(at) & 0xfc00) === 0xd800 && at + 1 < text.length

/**
 * The runs after a change: what it inserted is its actor's, the rest keeps its author.
 * @param {readonly Run[]} runs
 * @param {ChangeSet} changes
 * @param {number | null} actor
 * @returns {Run[]}
 */
export function foldRuns(runs, changes, actor) {
  /** @type {Run[]} */
  const folded = []
  let index = 0
  let used = 0 // of the run at index
  /** @param {number} length @param {boolean} keep */
  const pass = (length, keep) => {
    while (length > 0 && index < runs.length) {
      const part = Math.min(length, runs[index].length - used)
      if (keep) push(folded, runs[index].actor, part)
      length -= part
      used += part
      if (used === runs[index].length) {
        index++
        used = 0
      }
    }
  }
  let at = 0
  changes.iterChanges((from, to, fromNew, toNew) => {
    pass(from - at, true)
    push(folded, actor, toNew - fromNew)
    pass(to - from, false)
    at = to
  })
  pass(changes.length - at, true)
  return folded
}

/**
 * The runs of the view, given the server's at a revision; null when that revision is too old, or not reached yet.
 * @param {Peer} peer
 * @param {number} revision
 * @param {Run[]} runs of the text at that revision
 * @returns {Run[] | null}
 */
export function runsOfView(peer, revision, runs) {
  const since = peer.trail.filter((trod) => trod.revision > revision)
  if (peer.confirmed.revision - revision !== since.length) return null
  for (const { changes, author } of since) runs = foldRuns(runs, changes, author?.id ?? null)
  if (peer.flight) runs = foldRuns(runs, peer.flight.changes, peer.actor)
  return foldRuns(runs, peer.local, peer.actor)
}

/**
 * The runs that touch a part of the text.
 * @param {readonly Run[]} runs
 * @param {number} from
 * @param {number} to
 * @returns {{actor: number | null, from: number, to: number}[]}
 */
export function runsBetween(runs, from, to) {
  const parts = []
  let at = 0
  for (const { actor, length } of runs) {
    if (at >= to) break
    const end = at + length
    if (end > from) parts.push({ actor, from: Math.max(at, from), to: Math.min(end, to) })
    at = end
  }
  return parts
}

/**
 * How much of the text each author wrote, most first.
 * @param {readonly Run[]} runs
 * @returns {{actor: number | null, share: number}[]} shares of 1
 */
export function shares(runs) {
  /** @type {Map<number | null, number>} */
  const lengths = new Map()
  let whole = 0
  for (const { actor, length } of runs) {
    lengths.set(actor, (lengths.get(actor) ?? 0) + length)
    whole += length
  }
  return [...lengths].map(([actor, length]) => ({ actor, share: length / whole })).sort((a, b) => b.share - a.share)
}

/**
 * @param {Run[]} runs
 * @param {number | null} actor
 * @param {number} length
 */
function push(runs, actor, length) {
  if (length <= 0) return
  const last = runs[runs.length - 1]
  if (last?.actor === actor) runs[runs.length - 1] = { actor, length: last.length + length }
  else runs.push({ actor, length })
}
