/**
 * What the console uses of CodeMirror, bundled into `static/built/codemirror.js`.
 * The editor's modules are served as they are written and import CodeMirror from there.
 */
export {
  Annotation,
  AnnotationType,
  ChangeDesc,
  ChangeSet,
  Compartment,
  EditorSelection,
  EditorState,
  MapMode,
  Prec,
  RangeSet,
  RangeSetBuilder,
  StateEffect,
  StateEffectType,
  StateField,
  Text,
  Transaction,
} from "@codemirror/state"
export {
  Decoration,
  EditorView,
  GutterMarker,
  ViewPlugin,
  ViewUpdate,
  WidgetType,
  drawSelection,
  gutter,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view"
export { defaultKeymap, history, historyKeymap, redo, redoDepth, undo, undoDepth } from "@codemirror/commands"
export {
  HighlightStyle,
  Language,
  LanguageSupport,
  defineLanguageFacet,
  syntaxHighlighting,
} from "@codemirror/language"
export { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search"
export { diff, presentableDiff } from "@codemirror/merge"
export { GFM, parser as markdownParser } from "@lezer/markdown"
export { tags } from "@lezer/highlight"
