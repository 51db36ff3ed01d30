/** Wraps a listener so that its errors have no effect on the caller: a broken log must not cost a lease. */
export function guarded<Said>(listener: ((said: Said) => unknown) | undefined): (said: Said) => void {
  if (listener === undefined) return () => {}
  const complain = (error: unknown) => console.error('a listener threw', error)
  return (said) => {
    try {
      // An async listener rejects later, which would end the program.
      const result = listener(said)
      if (result instanceof Promise) result.catch(complain)
    } catch (error) {
      complain(error)
    }
  }
}
