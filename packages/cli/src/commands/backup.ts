import { statSync } from 'node:fs'
import type { Command } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { locationOf, storeFlags, withStoreTools } from '../store-location.ts'
import { print, printJson } from '../terminal.ts'

export const backup: Command = {
  operands: 'FILE',
  operandCount: [1, 1],
  details:
    'Copies the data of the embedded store into one file, whether the service runs or not; it goes on meanwhile.\nTo restore, put the file as baton.db into an empty folder and serve that. For PostgreSQL, use its own tools.',
  flags: {
    ...storeFlags,
    force: { kind: 'switch', description: 'replace a file of that name' },
  },
  examples: [
    { line: 'baton backup --data /var/lib/baton /backup/baton-2026-03-01.db', says: 'Each night' },
    { line: 'baton backup today.db --force && baton verify today.db', says: 'Whether it can be relied upon' },
  ],
  run: async (given) => {
    const [file = ''] = given.operands
    await withStoreTools('copying', (tools, progress) =>
      tools.backUp(locationOf(given), { file, mayReplace: given.switch('force'), progress }),
    )
    const { size } = statSync(file)
    if (given.switch('json')) printJson({ file, bytes: size })
    else print(`${file}: ${(size / 2 ** 20).toFixed(1)} MiB`)
    return exitCodes.ok
  },
}
