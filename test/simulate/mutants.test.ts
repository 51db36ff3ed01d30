import { allMutants, testFinds } from './find-mutants.ts'

/** `mutants.long.test.ts` has all of them. */
testFinds(allMutants.filter(({ isShort }) => isShort))
