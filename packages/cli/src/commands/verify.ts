import type { Command } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { counted } from '../show/numbers.ts'
import { shown } from '../show/table.ts'
import { locationOf, storeFlags, withStoreTools } from '../store-location.ts'
import { print, printJson } from '../terminal.ts'

const SHOWN_FINDINGS = 100

export const verify: Command = {
  operands: '[FILE]',
  operandCount: [0, 1],
  details:
    'Reads all of a store, whether the service runs or not, or a backup or an export, and checks it: counters against\npartitions, the order of the hand-off, leases, level barriers, indexes. Changes nothing. Ends with 1 if something is wrong.',
  flags: storeFlags,
  examples: [
    { line: 'baton verify --data /var/lib/baton', says: 'The store of a service that may be running' },
    { line: 'baton verify baton-backup.db', says: 'A backup' },
  ],
  run: async (given) => {
    const [file] = given.operands
    const { findings, counts } = await withStoreTools('checking', (tools, progress) =>
      tools.verify(file ?? locationOf(given), progress),
    )
    if (given.switch('json')) printJson({ sound: findings.length === 0, findings, counts })
    else if (findings.length === 0)
      print(`sound: ${counted(counts.tasks, 'task')}, ${counted(counts.partitions, 'partition')}`)
    else {
      for (const finding of findings.slice(0, SHOWN_FINDINGS)) print(shown(finding))
      const more = findings.length - SHOWN_FINDINGS
      if (more > 0) print(`and ${more} more; --json has them all`)
    }
    return findings.length === 0 ? exitCodes.ok : exitCodes.refused
  },
}
