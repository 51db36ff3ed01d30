import { allMutants, testFinds } from './find-mutants.ts'

testFinds(allMutants)
