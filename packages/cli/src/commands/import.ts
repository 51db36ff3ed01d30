import type { Command } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { counted } from '../show/numbers.ts'
import { locationOf, storeFlags, withStoreTools } from '../store-location.ts'
import { print, printJson } from '../terminal.ts'

export const importCommand: Command = {
  operands: 'FILE',
  operandCount: [1, 1],
  details:
    'Brings what `baton export` wrote into a store that holds no task: all of it, or nothing. The file is checked first,\nand the number of rows in the end. No service may run on the store.',
  flags: storeFlags,
  examples: [
    { line: 'baton import --data /var/lib/baton baton.ndjson.gz', says: 'Into the embedded store' },
    {
      line: 'BATON_DATABASE_URL=postgres://baton@db/baton baton import baton.ndjson.gz',
      says: 'Into PostgreSQL',
    },
  ],
  run: async (given) => {
    const [file = ''] = given.operands
    const counts = await withStoreTools('importing', (tools, progress) =>
      tools.importStore(locationOf(given), { file, progress }),
    )
    if (given.switch('json')) printJson({ file, counts })
    else print(`${counted(counts.tasks, 'task')}, ${counted(counts.partitions, 'partition')} imported`)
    return exitCodes.ok
  },
}
