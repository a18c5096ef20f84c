// When to try again. Pure.

/** The first pause after a lost connection, and the longest one, in milliseconds. */
export const SHORTEST_MS = 1_000
export const LONGEST_MS = 30_000

/**
 * The pause before the next try: doubled with each failure, and drawn by chance, so that the tabs of a team do not all
 * come back in one moment after a restart.
 * @param {number} failures tries that failed since the connection last held
 * @param {number} chance from 0 to 1
 */
export function pauseMs(failures, chance) {
  const least = Math.min(LONGEST_MS / 2, SHORTEST_MS * 2 ** failures)
  return Math.min(LONGEST_MS, Math.round(least * (1 + chance)))
}
