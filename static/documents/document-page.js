// The page of a document: its loop, and everything around the text.

import { start } from "../console/behaviours.js"
import { Outline } from "../console/outline.js"
import { getJson } from "../console/requests.js"
import { thin } from "../console/times.js"
import { toast } from "../console/toasts.js"
import { ask, onStatus, send, subscribe, tellUnsaved } from "../live/socket.js"
import { Actors } from "./actors.js"
import { shares } from "./authorship.js"
import { History } from "./history.js"
import { countCodePoints } from "./limits.js"
import { Loop } from "./loop.js"
import { countUnsaved, isSaved } from "./peer.js"
import { Presence } from "./presence.js"
import { Refusals } from "./refusals.js"
import { Revisions } from "./revisions.js"

/** Saving that is over sooner is not mentioned: the words would only flicker. */
const SAVING_MS = 400

/** Facts of the pane are counted over the whole text: not with every letter. */
const FACTS_MS = 1_000

/** Revisions read for the pane when the page opens. */
const LATEST = 30

/**
 * @param {string} id
 * @returns {any}
 */
const byId = (id) => document.getElementById(id)

/** @type {import("./loop.js").Boot} */
const boot = JSON.parse(byId("document-boot").textContent)
const nonce = /** @type {HTMLMetaElement | null} */ (document.querySelector("meta[name=csp-nonce]"))?.nonce ?? ""
const actors = new Actors()
actors.learn({ id: boot.actor, name: boot.name, kind: "person" })

const loop = new Loop({
  boot,
  parent: byId("editor"),
  nonce,
  actors,
  socket: { subscribe, send, ask },
  told: {
    opened,
    updated,
    recorded: (events) => {
      const time = new Date().toISOString()
      revisions.add(events.map((event) => ({ time, ...event })))
      history?.grown()
    },
    unattributed: readAuthors,
    presence: (frame) => (presence ? presence.receive(frame) : early.push(frame)),
    refusal: (frame) => refusals?.add(frame),
    refused: (words) => toast(words),
    ended: (error) => toast(`${error.message} What you see is kept on this page until you leave it.`),
  },
})
const revisions = new Revisions({ actors, open: (revision) => history?.openAt(revision) })

/** @type {Presence | undefined} */
let presence
/** Who is here may be told before the text is. @type {import("./presence.js").PresenceFrame[]} */
const early = []
/** @type {History | undefined} */
let history
/** @type {Refusals | undefined} */
let refusals
/** @type {import("../live/client.js").StatusName} */
let connection = "connecting"

/** @param {import("./editor.js").Editor} editor */
function opened(editor) {
  byId("editor").classList.add("live")
  presence = new Presence({ document: boot.id, actors, editor, send, list: byId("present") })
  history = new History({ document: boot.id, editor, actors, failed: toast })
  refusals = new Refusals({ actors, editor })
  for (const frame of early.splice(0)) presence.receive(frame)
  history.grown()
  readAuthors()
  readRevisions()
  const wanted = new URLSearchParams(location.search).get("revision")
  if (wanted !== null && /^\d+$/.test(wanted)) history.openAt(Number(wanted))
}

onStatus(({ name }) => {
  connection = name
  if (name === "offline" || name === "catching up") presence?.forget()
  if (presence) presence.isHeard = name === "live"
  if (name === "live") presence?.tell()
  updated()
})

// ---------- the bar ----------

/** @type {number | null} when the oldest unsaved typing began */
let unsavedSince = null
/** @type {ReturnType<typeof setTimeout> | undefined} */
let savingSoon
let stuckSaid = false

function updated() {
  const { editor } = loop
  if (!editor) return
  presence?.moved()
  drawSaved(editor)
  drawFoot(editor)
  drawFacts()
}

/** @param {import("./editor.js").Editor} editor */
function drawSaved(editor) {
  const { peer } = editor
  if (isSaved(peer)) unsavedSince = null
  else unsavedSince ??= Date.now()
  const [state, words] = savedWords(peer)
  const place = byId("saved")
  place.dataset.state = state
  const said = place.querySelector("span")
  if (said.textContent !== words) said.textContent = words
  clearTimeout(savingSoon)
  if (unsavedSince !== null) savingSoon = setTimeout(updated, SAVING_MS)
  if (peer.stuck && !stuckSaid) {
    stuckSaid = true
    toast(`Your last changes were not saved: ${peer.stuck.message} They stay on this page: copy them, then reload it.`)
  }
}

/**
 * @param {import("./peer.js").Peer} peer
 * @returns {[string, string]}
 */
function savedWords(peer) {
  const count = countUnsaved(peer)
  const edits = `${count} edit${count === 1 ? "" : "s"} not saved`
  if (peer.stuck) return ["stuck", edits]
  if (!boot.can_edit) return ["read", `Read only, r${peer.confirmed.revision}`]
  if (unsavedSince === null || Date.now() - unsavedSince < SAVING_MS)
    return ["saved", `Saved, r${peer.confirmed.revision}`]
  return connection === "live" ? ["saving", "Saving"] : ["unsaved", edits]
}

function unsavedSentence() {
  const count = loop.editor ? countUnsaved(loop.editor.peer) : 0
  if (!count) return ""
  const edits =
    count === 1 ? "1 edit of yours is not saved yet; it is" : `${count} edits of yours are not saved yet; they are`
  return `${edits} kept on this page.`
}
tellUnsaved(unsavedSentence)
addEventListener("beforeunload", (event) => {
  if (loop.editor && !isSaved(loop.editor.peer)) event.preventDefault()
})

byId("show-authors").addEventListener("click", (/** @type {MouseEvent} */ event) => {
  const plain = byId("main").classList.toggle("plain")
  const button = /** @type {HTMLElement} */ (event.currentTarget)
  button.setAttribute("aria-pressed", String(!plain))
})

// ---------- the foot ----------

byId("next-unread").addEventListener("click", () => loop.editor?.goToUnread())
byId("read-all").addEventListener("click", () => loop.editor?.readAll())

/** @param {import("./editor.js").Editor} editor */
function drawFoot(editor) {
  const { doc, selection } = editor.view.state
  const line = doc.lineAt(selection.main.head)
  byId("place").textContent = `Line ${thin(line.number)}, column ${thin(selection.main.head - line.from + 1)}`
  const count = editor.unread.length
  byId("next-unread").hidden = byId("read-all").hidden = count === 0
  byId("next-unread").querySelector("span").textContent = `${count} unread agent edit${count === 1 ? "" : "s"}`
}

// ---------- the pane ----------

/** @type {ReturnType<typeof setTimeout> | undefined} */
let factsDue

function drawFacts() {
  factsDue ??= setTimeout(() => {
    factsDue = undefined
    const { editor } = loop
    if (!editor) return
    const { doc } = editor.view.state
    const length = countCodePoints(doc)
    byId("length").textContent = thin(length)
    byId("size").textContent = `${thin(length)} characters, ${thin(doc.lines)} line${doc.lines === 1 ? "" : "s"}`
    drawShares(editor)
  }, FACTS_MS)
}

/** @param {import("./editor.js").Editor} editor */
function drawShares(editor) {
  const items = shares(editor.runs).map(({ actor, share }) => {
    const item = document.createElement("li")
    const who = document.createElement("span")
    who.className = `who ${actors.classOf(actor).replace("ag ", "agent ")}`
    who.textContent = actor === null ? "not known yet" : actors.nameOf(actor)
    const part = document.createElement("span")
    part.className = "quiet"
    part.textContent = share < 0.005 ? "less than 1 %" : `${Math.round(share * 100)} %`
    item.append(who, part)
    return item
  })
  byId("shares").replaceChildren(...items)
}

// ---------- what the server tells when asked ----------

async function readAuthors() {
  for (let tries = 0; tries < 3; tries++) {
    const { editor } = loop
    if (!editor) return
    const { text, revision } = editor.peer.confirmed
    const answer = await getJson(`/api/documents/${boot.id}/authors?revision=${revision}`).catch(() => null)
    if (!answer) return
    for (const author of answer.actors) actors.learn(author)
    if (editor.setAuthors(revision, text, answer.items)) return drawFacts()
  }
}

async function readRevisions() {
  const revision = loop.editor?.peer.confirmed.revision ?? boot.revision
  const url = `/api/documents/${boot.id}/batches?after=${Math.max(0, revision - LATEST)}&limit=${LATEST}`
  const answer = await getJson(url).catch(() => null)
  if (answer) revisions.add(answer.items)
}

start({ outline: Outline })
loop.start()
