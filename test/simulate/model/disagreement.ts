/** What was answered or stored is not what the model says. */
export class Disagreement extends Error {
  override name = 'Disagreement'
}

export function disagree(text: string): never {
  throw new Disagreement(text)
}
