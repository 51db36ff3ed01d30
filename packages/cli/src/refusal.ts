/** A store or a file that cannot be used as asked; the message says why and what to do. */
export class Refusal extends Error {
  override name = 'Refusal'
}
