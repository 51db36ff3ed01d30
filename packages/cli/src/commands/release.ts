import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { counted } from '../show/numbers.ts'
import { shown } from '../show/table.ts'
import { print, printJson } from '../terminal.ts'
import { agreed } from './control.ts'

export const release: Command = {
  operands: 'INSTANCE',
  operandCount: [1, 1],
  details:
    'Takes all leases of an instance back, for a worker that died or hangs: their partitions are ready at once, instead of\n' +
    'when the leases expire. It costs each an attempt, like an expiry. A worker that is alive after all goes on until it\n' +
    'renews or settles, so that a partition may be worked on twice.',
  flags: {
    yes: { kind: 'switch', short: 'y', description: 'do not ask; a script needs it' },
    ...connectionFlags,
  },
  examples: [{ line: 'baton release loader-7', says: 'Its machine is gone' }],
  run: async (given) => {
    const instanceId = given.operands[0] ?? ''
    const question = `${shown(instanceId)}: Take back all that it holds? Where it is alive, its work is done twice.`
    const refusal = await agreed(question, given)
    if (refusal !== undefined) return refusal
    const answer = await connect(given).releaseInstance(instanceId)
    if (given.switch('json')) printJson(answer)
    else {
      const parked = answer.parked === 0 ? '' : `, ${counted(answer.parked, 'partition')} parked`
      print(`${shown(instanceId)}: ${counted(answer.released, 'lease')} taken back${parked}`)
    }
    return exitCodes.ok
  },
}
