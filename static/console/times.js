// How a moment is written. Pure; its twin is console/shown.py.

const THIN = "\u202f"

/**
 * How long ago, in one unit: 12 s, 41 m, 4 h, 18 d.
 * @param {number} seconds
 */
export function age(seconds) {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < 60) return `${whole}${THIN}s`
  if (whole < 3600) return `${Math.floor(whole / 60)}${THIN}m`
  if (whole < 86400) return `${Math.floor(whole / 3600)}${THIN}h`
  return `${Math.floor(whole / 86400)}${THIN}d`
}

/**
 * What a page says of a moment.
 * @param {Date} time
 * @param {Date} now
 * @param {string} form "ago", "age" or "clock"
 */
export function said(time, now, form) {
  if (form === "clock") return clock(time)
  const words = age((now.getTime() - time.getTime()) / 1000)
  return form === "ago" ? `${words} ago` : words
}

/** @param {number} n */
const two = (n) => String(n).padStart(2, "0")

/**
 * The hour in the reader's own zone.
 * @param {Date} time
 */
export function clock(time) {
  return `${two(time.getHours())}:${two(time.getMinutes())}`
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/**
 * The whole moment in the reader's own zone, for a title.
 * @param {Date} time
 */
export function exact(time) {
  const day = `${time.getDate()} ${MONTHS[time.getMonth()]} ${time.getFullYear()}`
  return `${day}, ${clock(time)}:${two(time.getSeconds())}`
}

/**
 * 12345 as "12 345".
 * @param {number} number
 */
export function thin(number) {
  return number.toLocaleString("en-US").replace(/,/g, THIN)
}
