import { afterAll, beforeAll, describe, test } from 'vitest'
import { withoutPython } from '../support/python.ts'
import { callBacks } from './cases/call-backs.ts'
import { calls } from './cases/calls.ts'
import { leaders } from './cases/leaders.ts'
import { leases } from './cases/leases.ts'
import { operations } from './cases/operations.ts'
import { outages } from './cases/outages.ts'
import { stopping } from './cases/stopping.ts'
import { workers } from './cases/workers.ts'
import { ClientProcess, type Language } from './client-process.ts'

/** A behaviour of every client library. */
export type Case = (client: ClientProcess) => Promise<void>
export type Cases = Readonly<Record<string, Case>>

const subjects: Readonly<Record<string, Cases>> = {
  'a call': calls,
  'an operation': operations,
  'a call-back': callBacks,
  'a worker': workers,
  'a lease': leases,
  'a leader': leaders,
  'an outage': outages,
  'a worker that stops': stopping,
}

/** Runs the whole list with a client library, against real services. */
export async function runCases(language: Language): Promise<void> {
  const skip = language === 'python' && (await withoutPython('the cases of the Python client'))
  describe.skipIf(skip)(`the ${language} client`, () => {
    let client: ClientProcess
    beforeAll(async () => {
      client = await ClientProcess.start(language)
    })
    afterAll(() => client.signal('SIGKILL'))
    for (const [subject, cases] of Object.entries(subjects)) {
      describe(subject, () => {
        for (const [name, run] of Object.entries(cases)) test(name, () => run(client))
      })
    }
  })
}
