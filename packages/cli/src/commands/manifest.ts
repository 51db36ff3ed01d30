import { once } from 'node:events'
import type { PartitionState } from '@baton/client'
import { partitionStates } from '@baton/protocol/without-schemas'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'

export const manifest: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Writes one line of JSON per partition, by level and index: what was called back, what became of it, and its latest\n' +
    'attempts with who made them and why they failed. `baton call-back --from-manifest` hands such lines over again.',
  flags: {
    state: { kind: 'text', placeholder: 'STATE', choices: partitionStates, description: 'only these' },
    level: { kind: 'number', placeholder: 'N', description: 'only this level' },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton manifest orders-2026-03 > manifest.ndjson', says: 'For the audit' },
    {
      line: 'baton manifest orders-2026-03 --state parked > parked.ndjson',
      says: 'What is stuck, with the reasons',
    },
  ],
  run: async (given) => {
    const client = connect(given)
    const state = given.text('state') as PartitionState | undefined
    const level = given.number('level')
    for await (const line of client.manifest(given.operands[0] ?? '', { state, level })) {
      const wire = client.tableField.toWire(line)
      // A slow reader slows the service down, and nothing piles up here.
      if (!process.stdout.write(`${JSON.stringify(wire)}\n`)) await once(process.stdout, 'drain')
    }
    return exitCodes.ok
  },
}
