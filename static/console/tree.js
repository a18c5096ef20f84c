// The page of a root.

import { start } from "./behaviours.js"
import { Outline } from "./outline.js"
import { Tally } from "./tally.js"
import { Watching } from "./watching.js"

start({ outline: Outline, tally: Tally, watching: Watching })
