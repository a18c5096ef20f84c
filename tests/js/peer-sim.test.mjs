// The simulator as a test: a fixed set of schedules, and one that once wedged a peer for ever. More: see peer-sim.mjs.
import assert from "node:assert/strict"
import fs from "node:fs"
import { test } from "node:test"
import { play, schedule, shrink } from "./peer-sim.mjs"

const SEEDS = 300
const LENGTH = 200

/** Views that may show a text twice for one round trip (D13): none in 6,500 longer schedules; 100 without holding snapshots. */
const MOST_TWICE = 5

test(`nobody loses, doubles or undoes another's text in ${SEEDS} schedules`, () => {
  let twice = 0
  let undone = 0
  let back = 0
  for (let seed = 0; seed < SEEDS; seed++) {
    const one = schedule(seed, LENGTH)
    try {
      const stats = play(one)
      twice += stats.twice
      undone += stats.undone
      back += stats.back
    } catch (error) {
      assert.fail(`seed ${seed}: ${error}\n${JSON.stringify(shrink(one))}`)
    }
  }
  assert.ok(twice <= MOST_TWICE, `${twice} views showed a text twice`)
  assert.ok(undone > 500, `only ${undone} undos were played`)
  assert.ok(back < 200, `${back} deleted characters came back`)
})

test("a refused batch that a later snapshot holds does not wedge its peer", () => {
  const file = new URL("schedule-held-snapshot.json", import.meta.url)
  assert.ok(play(JSON.parse(fs.readFileSync(file, "utf8"))).typed > 0)
})
