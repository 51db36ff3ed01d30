/** The folder for temporary files does not take what comes: it is full, or not ours to write to. */
export class SpoolError extends Error {
  override name = 'SpoolError'
}
