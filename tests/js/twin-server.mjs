// Answers batches with what the twin makes of them, one JSON line for each: [text, edits] -> {result} or {error, message}.
import { createInterface } from "node:readline"
import { applyEdits, EditError } from "../../static/documents/applier.js"

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const [text, edits] = JSON.parse(line)
  console.log(JSON.stringify(answer(text, edits)))
}

/**
 * @param {string} text
 * @param {import("../../static/documents/applier.js").Edit[]} edits
 */
function answer(text, edits) {
  try {
    return { result: applyEdits(text, edits) }
  } catch (error) {
    if (!(error instanceof EditError)) throw error
    return { error: error.facts, message: error.message }
  }
}
