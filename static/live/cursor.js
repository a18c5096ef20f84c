// How far one reader of a stream has read (R3). Pure: facts are numbered and must follow each other, states are replaced.

/**
 * @typedef {{type: "snapshot", stream: string, seq: number, state: any}} SnapshotFrame
 * @typedef {{seq: number, [key: string]: any}} Fact
 * @typedef {{type: "events", stream: string, events: Fact[]}} EventsFrame
 * @typedef {{type: "state", stream: string, version: number, state: any}} StateFrame
 * @typedef {{type: "rows", stream: string, version: number, rows: any[]}} RowsFrame
 * @typedef {SnapshotFrame | EventsFrame | StateFrame | RowsFrame} StreamFrame
 *
 * @typedef {object} Cursor
 * @property {number | undefined} seq the last fact that was read; nothing yet: a snapshot comes first
 * @property {number} version of the state that was shown last
 */

/**
 * @param {number} [after]
 * @returns {Cursor}
 */
export const createCursor = (after) => ({ seq: after, version: -1 })

/**
 * What of a frame is new to the reader. `gap` says that facts are missing before it: ask again for everything after
 * `cursor.seq`.
 * @param {Cursor} cursor
 * @param {StreamFrame} frame
 * @returns {{cursor: Cursor, news: StreamFrame | null, gap?: boolean}}
 */
export function take(cursor, frame) {
  switch (frame.type) {
    case "snapshot":
      return { cursor: { seq: frame.seq, version: -1 }, news: frame }
    case "events":
      return takeEvents(cursor, frame)
    case "state":
      if (frame.version <= cursor.version) return { cursor, news: null }
      return { cursor: { ...cursor, version: frame.version }, news: frame }
    case "rows":
      if (cursor.seq !== undefined && frame.version <= cursor.seq) return { cursor, news: null }
      return { cursor: { ...cursor, seq: frame.version }, news: frame }
  }
}

/**
 * @param {Cursor} cursor
 * @param {EventsFrame} frame
 * @returns {{cursor: Cursor, news: StreamFrame | null, gap?: boolean}}
 */
function takeEvents(cursor, frame) {
  const { seq } = cursor
  if (seq === undefined) return { cursor, news: null }
  const events = frame.events.filter((event) => event.seq > seq)
  if (!events.length) return { cursor, news: null }
  if (events[0].seq > seq + 1) return { cursor, news: null, gap: true }
  return { cursor: { ...cursor, seq: events[events.length - 1].seq }, news: { ...frame, events } }
}

/**
 * Whether a heartbeat tells of facts that the reader has not got: the last message may be lost.
 * @param {Cursor} cursor
 * @param {number} head
 */
export const isBehind = (cursor, head) => cursor.seq !== undefined && cursor.seq < head
