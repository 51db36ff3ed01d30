/** An answer or a stored value differs from the model. */
export class Disagreement extends Error {
  override name = 'Disagreement'
}

export function disagree(text: string): never {
  throw new Disagreement(text)
}

export function claim(holds: boolean, text: string): void {
  if (!holds) disagree(text)
}
