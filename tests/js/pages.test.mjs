// The pure modules of pages: how times are written, wishes kept, commands found, and work bounded.

import assert from "node:assert/strict"
import { test } from "node:test"

import { matching } from "../../static/console/commands.js"
import { atMostEvery } from "../../static/console/throttle.js"
import { age, clock, exact, said, thin } from "../../static/console/times.js"
import { WIDTH_LEAST, WIDTH_MOST, cookieIn, cookieLine, readWishes, stepped, writeWishes } from "../../static/console/wishes.js"

test("ages are one unit, as the server writes them", () => {
  const plain = (/** @type {number} */ seconds) => age(seconds).replace("\u202f", " ")
  assert.deepEqual([-5, 0, 59, 60, 3599, 3600, 86400 * 18].map(plain), ["0 s", "0 s", "59 s", "1 m", "59 m", "1 h", "18 d"])
})

test("a moment is said in the form that its element asks for", () => {
  const time = new Date(2026, 10, 3, 9, 5, 7)
  const now = new Date(time.getTime() + 41 * 60_000)
  assert.equal(said(time, now, "ago"), "41\u202fm ago")
  assert.equal(said(time, now, "age"), "41\u202fm")
  assert.equal(said(time, now, "clock"), "09:05")
  assert.equal(clock(time), "09:05")
  assert.equal(exact(time), "3 Nov 2026, 09:05:07")
  assert.equal(thin(1234567), "1\u202f234\u202f567")
})

test("wishes survive being written and read", () => {
  const wishes = new Map([
    ["left", "288"],
    ["fold-right", ""],
  ])
  assert.deepEqual(readWishes(writeWishes(wishes)), wishes)
  assert.deepEqual(readWishes(""), new Map())
  assert.equal(cookieIn("a=1; panes=left=288.fold-right; b=2", "panes"), "left=288.fold-right")
  assert.equal(cookieIn("xpanes=1", "panes"), "")
  assert.match(cookieLine("scheme", "dark"), /^scheme=dark; path=\/; max-age=\d+; samesite=lax$/)
})

test("widths are the steps that the stylesheet knows", () => {
  assert.deepEqual([0, 208, 215, 217, 999].map(stepped), [WIDTH_LEAST, 208, 208, 224, WIDTH_MOST])
})

test("a command is found by all of its words, in any order", () => {
  const items = [{ label: "Start a branch" }, { label: "Stop the run" }]
  assert.deepEqual(matching(items, "branch st"), [items[0]])
  assert.deepEqual(matching(items, ""), items)
  assert.deepEqual(matching(items, "nothing"), [])
})

test("work that is asked for while it runs, runs once more and never twice at a time", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] })
  let [running, runs] = [0, 0]
  /** @type {(() => void)[]} */
  const ends = []
  const settled = async () => {
    for (let n = 0; n < 5; n += 1) await Promise.resolve()
  }
  const ask = atMostEvery(async () => {
    running += 1
    runs += 1
    assert.equal(running, 1)
    await new Promise((end) => ends.push(() => end(undefined)))
    running -= 1
  }, 400)
  for (let n = 0; n < 3; n += 1) ask()
  assert.equal(runs, 1)
  ends[0]?.()
  await settled()
  assert.equal(runs, 1) // it rests
  t.mock.timers.tick(400)
  assert.equal(runs, 2)
  ends[1]?.()
  await settled()
  t.mock.timers.tick(4000)
  assert.equal(runs, 2)
  ask()
  assert.equal(runs, 3)
})
