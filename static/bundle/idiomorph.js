/** Changes elements of the page into what the server rendered anew, keeping those that stay: `static/built/idiomorph.js`. */
export { Idiomorph } from "idiomorph"
