import { once } from 'node:events'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'

export const manifest: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Writes one line of JSON per partition, what was called back and what became of it, by level and index.',
  flags: connectionFlags,
  examples: [
    { line: 'baton manifest orders-2026-03 > manifest.ndjson', says: 'For the audit' },
    {
      line: 'baton manifest orders-2026-03 | jq -r \'select(.state == "parked") | .partition_name\'',
      says: 'What is stuck',
    },
  ],
  run: async (given) => {
    const client = connect(given)
    for await (const line of client.manifest(given.operands[0] ?? '')) {
      const wire = client.tableField.toWire(line)
      // A slow reader slows the service down, and nothing piles up here.
      if (!process.stdout.write(`${JSON.stringify(wire)}\n`)) await once(process.stdout, 'drain')
    }
    return exitCodes.ok
  },
}
