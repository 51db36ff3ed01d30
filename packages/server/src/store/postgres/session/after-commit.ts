import { StoreUnavailable } from '../../../handoff/store.ts'

/** The batch is committed: what comes after it may fail, but must not make it look undone. */
export async function afterCommit<Result>(work: () => Promise<Result>, otherwise: Result): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailable) return otherwise
    throw error
  }
}
