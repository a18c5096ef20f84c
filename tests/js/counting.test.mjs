// Characters left, counted as the server counts (L25).
import assert from "node:assert/strict"
import { test } from "node:test"
import { leftOf } from "../../static/console/counting.js"

test("code points count, not units", () => {
  assert.deepEqual(leftOf("😀é", 4), { left: 2, over: false, words: "2 left" })
})

test("the edge is not over, one more is", () => {
  assert.equal(leftOf("x".repeat(160), 160).over, false)
  assert.deepEqual(leftOf("x".repeat(161), 160), { left: -1, over: true, words: "1 too many" })
})

test("blanks around it and CR LF count as the server stores them", () => {
  assert.equal(leftOf("  a\r\nb \n", 10).left, 7)
})

test("thousands are parted", () => {
  assert.equal(leftOf("", 4000).words, "4\u2009000 left")
})
