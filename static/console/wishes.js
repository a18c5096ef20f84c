// What the reader wished for the frame, in cookies that the server reads before the first paint. No DOM here.

const YEAR = 60 * 60 * 24 * 365

/**
 * The wishes about panes as the cookie holds them: "left=288.fold-right".
 * @param {string} cookie
 * @returns {Map<string, string>}
 */
export function readWishes(cookie) {
  const wishes = new Map()
  for (const part of cookie.split(".")) {
    const [key, value = ""] = part.split("=")
    if (key) wishes.set(key, value)
  }
  return wishes
}

/** @param {Map<string, string>} wishes */
export function writeWishes(wishes) {
  return [...wishes].map(([key, value]) => (value ? `${key}=${value}` : key)).join(".")
}

/**
 * @param {string} jar what document.cookie says
 * @param {string} name
 */
export function cookieIn(jar, name) {
  for (const part of jar.split("; ")) if (part.startsWith(`${name}=`)) return part.slice(name.length + 1)
  return ""
}

/**
 * @param {string} name
 * @param {string} value
 */
export function cookieLine(name, value) {
  return `${name}=${value}; path=/; max-age=${YEAR}; samesite=lax`
}

/** Widths of a pane: the steps that base.css has rules for. */
export const WIDTH_LEAST = 208
export const WIDTH_MOST = 480
export const WIDTH_STEP = 16

/** @param {number} width px */
export function stepped(width) {
  const bounded = Math.min(Math.max(width, WIDTH_LEAST), WIDTH_MOST)
  return WIDTH_LEAST + Math.round((bounded - WIDTH_LEAST) / WIDTH_STEP) * WIDTH_STEP
}
