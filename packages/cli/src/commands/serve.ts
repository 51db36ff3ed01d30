import type { Command } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'

/** The service reads the command line itself: its flags, its help and its exit codes are its own. */
export const serve: Command = {
  operands: '',
  operandCount: [0, 0],
  details: 'Runs the service until it is told to stop. `baton serve --help` lists all of its settings.',
  flags: {},
  examples: [
    { line: 'baton serve --port 7070 --data ./data', says: 'On this machine, with its data beside it' },
  ],
  run: async ({ command }) => {
    process.argv = [process.argv[0] ?? '', process.argv[1] ?? '', ...command]
    await import('@baton/server/main')
    return typeof process.exitCode === 'number' ? process.exitCode : exitCodes.ok
  },
}
