// What every page has. A page's own module registers further behaviours with start().

import { start } from "./behaviours.js"
import { Copy } from "./copying.js"
import { Dialog } from "./dialogs.js"
import { Keys } from "./keys.js"
import { keepMoments } from "./moments.js"
import { Palette } from "./palette.js"
import { Opens, Sends } from "./forms.js"
import { Grip, Panes } from "./panes.js"
import { Scheme } from "./scheme.js"

start({ copy: Copy, dialog: Dialog, grip: Grip, keys: Keys, opens: Opens, palette: Palette, panes: Panes, scheme: Scheme, sends: Sends })
keepMoments()
