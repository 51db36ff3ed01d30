import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { freePort } from '../../../bench/harness/clean-up.ts'
import { certificateFile } from '../../postgres/support/postgres-server.ts'
import { spawnService } from '../../support/spawn-service.ts'
import { bearer } from '../../support/tokens-file.ts'
import type { Attack } from './attacks.ts'
import { Prober } from './prober.ts'
import { receivedMb, residentMb } from './resident.ts'
import { siegeToken, siegeTokens } from './siege-tokens.ts'
import type { SteadyClients } from './steady-thread.ts'

/** What honest clients and probes observed during one attack. */
export interface AttackReport {
  readonly name: string
  /** Partitions done per second. */
  readonly rateBefore: number
  readonly rateDuring: number
  /** Response times of `/livez` on new connections, in milliseconds. */
  readonly probesBefore: ReturnType<Prober['summary']>
  readonly probesDuring: ReturnType<Prober['summary']>
  readonly probesAfter: ReturnType<Prober['summary']>
  /** What reached the service per second during the attack. Megabytes are those of all clients. */
  readonly connectionRate: number
  readonly receivedMbRate: number
  readonly residentMbBefore: number
  readonly residentMbAtMost: number
  /** Probes that were not answered with 200. */
  readonly faults: readonly string[]
}

const HONEST = '127.0.0.9'
const SETTLING_MILLIS = 2000
const AFTER_MILLIS = 3000

/** Runs one attack together with honest clients, against a service with default settings. */
export async function attacked(attack: Attack, seconds: number): Promise<AttackReport> {
  const { name, openFiles, isSecure = false, hasTokens = false, settings = [] } = attack
  const folder = await mkdtemp(join(tmpdir(), 'baton-attack-'))
  const port = await freePort()
  const options = openFiles === undefined ? {} : { openFiles }
  const args = ['--port', String(port), '--data', folder, '--log-level', 'error', ...settings]
  if (isSecure)
    args.push('--tls-cert', certificateFile('right.crt'), '--tls-key', certificateFile('server.key'))
  if (hasTokens) args.push('--tokens-file', await siegeTokens(folder))
  const child = spawnService(args, options)
  const pid = child.pid ?? 0
  await new Promise((resolve) => child.stdout?.once('data', resolve))
  const headers = hasTokens ? bearer(siegeToken('honest')) : {}
  const workerData: SteadyClients = { port, address: HONEST, isSecure, headers }
  const steady = new Worker(new URL('./steady-thread.ts', import.meta.url), { workerData })
  let done = 0
  steady.on('message', (count: number) => {
    done = count
  })
  const attacker = fork(new URL('./attacker.ts', import.meta.url), [name, String(port), String(seconds)])
  let connections = 0
  attacker.once('message', (count) => {
    connections = Number(count)
  })
  const prober = new Prober(port, { everyMillis: 50, address: HONEST, isSecure })
  const probing = prober.run()
  let residentMbAtMost = 0
  const watching = setInterval(() => {
    residentMbAtMost = Math.max(residentMbAtMost, residentMb(pid))
  }, 100)
  const during = async (work: Promise<unknown>) => {
    const [began, before] = [performance.now(), done]
    prober.forget()
    await work
    const rate = ((done - before) * 1000) / (performance.now() - began)
    return { rate: Math.round(rate), probes: prober.summary() }
  }
  try {
    await pause(SETTLING_MILLIS)
    const quiet = await during(pause(seconds * 1000))
    const residentMbBefore = residentMb(pid)
    residentMbAtMost = residentMbBefore
    const receivedMbBefore = receivedMb(pid)
    attacker.send('start')
    const hard = await during(once(attacker, 'exit'))
    const receivedMbRate = Math.round((receivedMb(pid) - receivedMbBefore) / seconds)
    const after = await during(pause(AFTER_MILLIS))
    return {
      name,
      rateBefore: quiet.rate,
      rateDuring: hard.rate,
      probesBefore: quiet.probes,
      probesDuring: hard.probes,
      probesAfter: after.probes,
      connectionRate: Math.round(connections / seconds),
      receivedMbRate,
      residentMbBefore,
      residentMbAtMost,
      faults: prober.findings,
    }
  } finally {
    clearInterval(watching)
    prober.stop()
    await probing
    await steady.terminate()
    attacker.kill('SIGKILL')
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('close', resolve))
    await rm(folder, { recursive: true, force: true })
  }
}
