// What a document may hold (D6). Twin of documents/limits.py; the server decides, the editor says so before it is asked.

/** Code points of a document, at most. */
export const MAX_LENGTH = 2 * 1024 * 1024

/**
 * Whether a text is too long. Code points are counted only where it matters: fewer UTF-16 units are fewer points.
 * @param {import("../built/codemirror.js").Text} doc
 */
export function isTooLong(doc) {
  if (doc.length <= MAX_LENGTH) return false
  return countCodePoints(doc) > MAX_LENGTH
}

/**
 * How many code points a text has.
 * @param {import("../built/codemirror.js").Text} doc
 */
export function countCodePoints(doc) {
  let count = doc.length
  for (const part of doc.iter()) {
    for (let i = 0; i < part.length; i++) if ((part.charCodeAt(i) & 0xfc00) === 0xdc00) count--
  }
  return count
}
