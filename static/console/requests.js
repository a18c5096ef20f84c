// The page's own calls: JSON to the API, HTML fragments from the pages. One place adds the CSRF token and reads refusals.

/** A refusal of the product: code, sentence and facts. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {{code?: string, message?: string}} error
   */
  constructor(status, error) {
    super(error.message || `The server answered ${status}. Try again; if it goes on, look at its log.`)
    this.status = status
    this.code = error.code ?? "unknown"
    this.facts = error
  }
}

/** The server did not answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("The server does not answer. Nothing was changed as far as this page knows; try again.")
  }
}

/** A fresh id for a writing call, so that sending it again does nothing twice. */
export function freshId() {
  return crypto.randomUUID?.() ?? `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`
}

/**
 * @param {string} url
 * @param {RequestInit} [how]
 */
async function reach(url, how) {
  const answer = await fetch(url, how).catch(() => null)
  if (!answer) throw new Unreachable()
  return answer
}

/** @param {Response} answer */
async function refusalIn(answer) {
  const body = await answer.json().catch(() => ({}))
  return new Refusal(answer.status, body.error ?? {})
}

/**
 * Sends JSON and returns the JSON of the answer.
 * @param {string} method
 * @param {string} url
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export async function send(method, url, body) {
  const token = document.querySelector("meta[name=csrf-token]")?.getAttribute("content") ?? ""
  const answer = await reach(url, {
    method,
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRFToken": token },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  if (!answer.ok) throw await refusalIn(answer)
  return answer.status === 204 ? null : answer.json().catch(() => null)
}

/**
 * Sends a form with a file. XMLHttpRequest, since fetch does not tell how far an upload has come.
 * @param {string} url
 * @param {FormData} form
 * @param {{progressed: (part: number) => void, signal: AbortSignal}} how `part` of 1
 * @returns {Promise<any>}
 */
export function upload(url, form, { progressed, signal }) {
  const request = new XMLHttpRequest()
  const done = new Promise((resolve, reject) => {
    request.upload.onprogress = (event) => event.lengthComputable && progressed(event.loaded / event.total)
    request.onerror = request.onabort = () => reject(new Unreachable())
    request.onload = () => {
      const body = read(request.responseText)
      if (request.status < 400) resolve(body)
      else reject(new Refusal(request.status, body.error ?? {}))
    }
  })
  signal.addEventListener("abort", () => request.abort())
  request.open("POST", url)
  request.setRequestHeader("Accept", "application/json")
  request.setRequestHeader("X-CSRFToken", document.querySelector("meta[name=csrf-token]")?.getAttribute("content") ?? "")
  request.send(form)
  return done
}

/** @param {string} text */
function read(text) {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

/**
 * @param {string} url
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getJson(url, signal) {
  const answer = await fetch(url, { headers: { Accept: "application/json" }, signal })
  if (!answer.ok) throw await refusalIn(answer)
  return answer.json()
}

/**
 * A part of a page, rendered by the server.
 * @param {string} url
 * @returns {Promise<DocumentFragment>}
 */
export async function getFragment(url) {
  const answer = await reach(url, { headers: { Accept: "text/html", "X-Part": "1" } })
  if (!answer.ok) throw await refusalIn(answer)
  const holder = document.createElement("template")
  holder.innerHTML = await answer.text()
  return holder.content
}
