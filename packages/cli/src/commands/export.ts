import type { Command } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { counted } from '../show/numbers.ts'
import { locationOf, storeFlags, withStoreTools } from '../store-location.ts'
import { print, printJson } from '../terminal.ts'

export const exportCommand: Command = {
  operands: 'FILE',
  operandCount: [1, 1],
  details:
    'Writes all that a store holds into a file that `baton import` reads: tasks, partitions, leases, counters, the order,\nkeys. Compressed if its name ends with .gz. The service must be stopped: what it did later would be missing.',
  flags: {
    ...storeFlags,
    force: { kind: 'switch', description: 'replace a file of that name' },
  },
  examples: [
    { line: 'baton export --data /var/lib/baton baton.ndjson.gz', says: 'From the embedded store' },
    {
      line: 'BATON_DATABASE_URL=postgres://baton@db/baton baton export baton.ndjson.gz',
      says: 'From PostgreSQL',
    },
  ],
  run: async (given) => {
    const [file = ''] = given.operands
    const counts = await withStoreTools('exporting', (tools, progress) =>
      tools.exportStore(locationOf(given), { file, mayReplace: given.switch('force'), progress }),
    )
    if (given.switch('json')) printJson({ file, counts })
    else
      print(`${file}: ${counted(counts.tasks, 'task')}, ${counted(counts.partitions, 'partition')} exported`)
    return exitCodes.ok
  },
}
