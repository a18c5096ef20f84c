import { Annotation } from "../built/codemirror.js"

/** Marks a transaction that shows what came from elsewhere: it is nobody's typing here, and undo passes it over. */
export const remote = /** @type {import("../built/codemirror.js").AnnotationType<import("./peer.js").Step>} */ (
  Annotation.define()
)
