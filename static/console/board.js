// The board, and the same on the wall.

import { BoardLive } from "./boarding.js"
import { start } from "./behaviours.js"
import { Decides } from "./deciding.js"
import { Wall } from "./wall.js"

start({ board: BoardLive, decides: Decides, wall: Wall })
