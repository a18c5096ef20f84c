// The page of a conversation.

import { Attaching } from "./attaching.js"
import { start } from "./behaviours.js"
import { Composer, Stop, Withdraw } from "./composer.js"
import { Decides } from "./deciding.js"
import { Flow } from "./flow.js"
import { Following } from "./following.js"
import { Fork } from "./forking.js"
import { Outline } from "./outline.js"
import { Whole } from "./whole.js"

start({
  attaching: Attaching,
  composer: Composer,
  decides: Decides,
  flow: Flow,
  following: Following,
  fork: Fork,
  outline: Outline,
  stop: Stop,
  whole: Whole,
  withdraw: Withdraw,
})
