// Markdown as the editor shows it: headings, emphasis, code. Colours are classes of document.css.

import {
  Compartment,
  EditorState,
  GFM,
  HighlightStyle,
  Language,
  defineLanguageFacet,
  markdownParser,
  syntaxHighlighting,
  tags,
} from "../built/codemirror.js"

/** @typedef {import("../built/codemirror.js").Text} Text */

/**
 * UTF-16 units of a paragraph above which nothing is parsed any more: the parser reads a paragraph as one string, line by
 * line, so that a log of a megabyte without a blank line would take seconds at every key.
 */
export const LONGEST_PARAGRAPH = 32 * 1024

const language = new Language(defineLanguageFacet({}), markdownParser.configure(GFM), [], "markdown")

const styles = HighlightStyle.define([
  { tag: tags.heading1, class: "md-1" },
  { tag: tags.heading2, class: "md-2" },
  { tag: tags.heading3, class: "md-3" },
  { tag: [tags.heading4, tags.heading5, tags.heading6], class: "md-4" },
  { tag: tags.strong, class: "md-strong" },
  { tag: tags.emphasis, class: "md-em" },
  { tag: tags.strikethrough, class: "md-del" },
  { tag: tags.monospace, class: "md-code" },
  { tag: [tags.link, tags.url], class: "md-link" },
  { tag: tags.quote, class: "md-quote" },
  { tag: [tags.processingInstruction, tags.contentSeparator], class: "md-mark" },
])

const parsed = new Compartment()

/** In its place when nothing is parsed. @type {never[]} */
const PLAIN = []

/**
 * Markdown, as long as no paragraph is too long to be parsed with every key; then plain text until the page is opened
 * again.
 * @param {Text} doc
 */
export const markdown = (doc) => [
  syntaxHighlighting(styles),
  parsed.of(hasLongParagraph(doc) ? PLAIN : language.extension),
  EditorState.transactionExtender.of(({ docChanged, changes, startState, newDoc }) => {
    if (!docChanged || parsed.get(startState) === PLAIN) return null
    let long = false
    changes.iterChangedRanges((_from, _to, from, to) => {
      long ||= to - from > LONGEST_PARAGRAPH ? hasLongParagraph(newDoc) : isInLongParagraph(newDoc, from)
    })
    return long ? { effects: parsed.reconfigure(PLAIN) } : null
  }),
]

/** @param {Text} doc */
export function hasLongParagraph(doc) {
  let length = 0
  for (const line of doc.iterLines()) {
    length = line.trim() ? length + line.length + 1 : 0
    if (length > LONGEST_PARAGRAPH) return true
  }
  return false
}

/**
 * @param {Text} doc
 * @param {number} at
 */
function isInLongParagraph(doc, at) {
  const here = doc.lineAt(at)
  let length = here.length
  for (const step of [-1, 1]) {
    for (let number = here.number + step; number >= 1 && number <= doc.lines; number += step) {
      const line = doc.line(number)
      if (!line.text.trim()) break
      length += line.length + 1
      if (length > LONGEST_PARAGRAPH) return true
    }
  }
  return length > LONGEST_PARAGRAPH
}
