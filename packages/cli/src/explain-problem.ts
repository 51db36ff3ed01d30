import { ContractError, type ProblemError } from '@baton/client'
import { errorCodes } from '@baton/protocol/without-schemas'
import type { Origin } from './located-problem.ts'
import { shown } from './show/table.ts'

/** Where something answers, but not a service that knows what it is asked. */
export const urlHint =
  'Does --url or BATON_URL lead to Baton, with the base path if the service is mounted under one?'

/** Where the words of the protocol are for whoever writes requests, and not commands. */
const ownWords: Readonly<Record<string, { readonly detail?: string; readonly remedy?: string }>> = {
  token_missing: { detail: 'the service asks for a token', remedy: 'Give it by BATON_TOKEN or --token.' },
  token_unknown: { remedy: 'Check what BATON_TOKEN or --token say, and that it is meant for this service.' },
  route_unknown: { remedy: urlHint },
  task_unknown: { remedy: 'Check the id: baton tasks lists those that there are.' },
  partition_unknown: { remedy: 'baton partitions TASK lists those that there are.' },
  contract_violation: { detail: 'the service refused it', remedy: '' },
}

/** What a person needs to know about a problem: what is wrong, where, and what to do about it. */
export function problemLines(error: ProblemError, origin: Origin | undefined): string[] {
  const { problem, code } = error
  const faults = faultLines(error, origin)
  const words = ownWords[code]
  const remedy = words?.remedy ?? (Object.hasOwn(errorCodes, code) ? errorCodes[code].remedy : '')
  const hint = origin?.hintFor?.(problem.errors ?? [])
  return [
    ...(isInputFault(error)
      ? faults.map((line) => `baton: ${line}`)
      : [
          `baton: ${words?.detail ?? (faults.length > 0 ? problem.title : problem.detail)}`,
          ...faults.map((line) => `  ${line}`),
        ]),
    ...(remedy === '' ? [] : [remedy]),
    ...(hint === undefined ? [] : [hint]),
  ]
}

/** Found before it was sent, and told like everything else that is found in a file. */
function isInputFault(error: ProblemError): boolean {
  return error instanceof ContractError && error.foundBy === 'client'
}

function faultLines({ problem }: ProblemError, origin: Origin | undefined): string[] {
  const { errors = [], conflicts = [], errorsOmitted = 0, conflictsOmitted = 0 } = problem
  const line = (pointer: string, detail: string) => {
    const place = origin?.placeOf(pointer) ?? pointer
    const said = origin?.inItsTerms?.(detail) ?? detail
    return place === '' ? said : `${shown(place)}: ${said}`
  }
  const omitted = errorsOmitted + conflictsOmitted
  return [
    ...errors.map(({ pointer, detail }) => line(pointer, detail)),
    ...conflicts.map(({ pointer, partition_name, detail }) =>
      line(pointer, `${shown(partition_name)}: ${detail}`),
    ),
    ...(omitted > 0 ? [`… and ${omitted} more`] : []),
  ]
}
