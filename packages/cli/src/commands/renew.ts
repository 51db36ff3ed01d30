import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { duration } from '../show/numbers.ts'
import { note, print, printJson } from '../terminal.ts'

export const renew: Command = {
  operands: 'LEASE...',
  operandCount: [1, Number.POSITIVE_INFINITY],
  details:
    'Extends leases by their full length from now. Exits with 1 if any was refused: its work must be dropped.',
  flags: connectionFlags,
  examples: [{ line: 'baton renew "$lease" || kill "$worker"', says: 'Go on, or stop when it is lost' }],
  run: async (given) => {
    const answer = await connect(given).renew(given.operands)
    if (given.switch('json')) printJson(answer)
    else {
      for (const { leaseId, expiresInSeconds } of answer.renewed) {
        print(`${leaseId} ends in ${duration(expiresInSeconds)}`)
      }
      for (const { leaseId, code, detail } of answer.refused) note(`refused ${leaseId} (${code}): ${detail}`)
    }
    return answer.refused.length > 0 ? exitCodes.refused : exitCodes.ok
  },
}
