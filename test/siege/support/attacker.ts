import { setPriority } from 'node:os'
import { attacks, connectionsOpened } from './attacks.ts'

/**
 * Runs one attack in its own process, when the parent says so: `attacker.ts <name> <port> <seconds>`. With
 * the lowest priority: a real attacker takes no processor time from the service and its clients.
 */
const [name, port, seconds] = process.argv.slice(2)
const attack = attacks.find((each) => each.name === name)
if (attack === undefined) throw new Error(`there is no attack named ${name}`)
setPriority(19)
await new Promise((resolve) => process.once('message', resolve))
await attack.run(Number(port), AbortSignal.timeout(Number(seconds) * 1000))
process.send?.(connectionsOpened(), () => process.exit())
