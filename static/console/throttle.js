// Doing something again at most once in a while, and never twice at a time. Pure but for the timer.

/**
 * A function that runs `work` at once, and while it runs or rests remembers only that it was asked again.
 * @param {() => Promise<void>} work
 * @param {number} restMs pause between two runs
 * @returns {() => void}
 */
export function atMostEvery(work, restMs) {
  let busy = false
  let again = false
  async function run() {
    if (busy) {
      again = true
      return
    }
    busy = true
    try {
      await work()
    } finally {
      setTimeout(() => {
        busy = false
        if (again) {
          again = false
          void run()
        }
      }, restMs)
    }
  }
  return () => void run()
}
