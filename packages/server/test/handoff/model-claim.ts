/** A statement of the model that the store does not satisfy. */
export class Disagreement extends Error {
  override name = 'Disagreement'
}

export function claim(holds: boolean, text: string): void {
  if (!holds) throw new Disagreement(text)
}
