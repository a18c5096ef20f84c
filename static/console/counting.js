// Characters left of a limit. Counted in code points, as the server counts. Pure.

/**
 * @param {string} text
 * @param {number} limit
 * @returns {{left: number, over: boolean, words: string}}
 */
export function leftOf(text, limit) {
  const left = limit - [...text.trim().replace(/\r\n/g, "\n")].length
  const number = String(Math.abs(left)).replace(/\B(?=(\d{3})+$)/g, "\u2009")
  return { left, over: left < 0, words: left < 0 ? `${number} too many` : `${number} left` }
}
