import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { pythonProgram } from '../../test/support/python.ts'
import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { type CleanUp, temporaryFolder } from '../harness/clean-up.ts'
import { backlogOf } from '../harness/compared-servers.ts'
import { startHelper } from '../harness/helper-process.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { endProcess } from '../harness/server-process.ts'
import { startBaton } from '../harness/services.ts'
import { quotient } from '../report/model.ts'
import { workerContender } from '../workers/contender.ts'
import type { WorkerCalls, WorkInput, WorkResult } from '../workers/typescript-process.ts'

const CONCURRENCY = 16

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

type Way = keyof WorkerCalls

/** A process for each measurement: Python has nothing to warm up. */
function pythonRunner(python: string, cleanUp: CleanUp) {
  return async (way: Way, { urls: [url], concurrency, seconds }: WorkInput): Promise<WorkResult> => {
    const args = [pathOf('../workers/python_process.py'), way, url, `${concurrency}`, `${seconds}`]
    const child = spawn(python, args, {
      env: {
        ...process.env,
        PYTHONPATH: pathOf('../../clients/python/src'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    cleanUp.add(() => endProcess(child))
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    if (code !== 0) throw new Error(`the Python ${way} ended with exit code ${code}`)
    return JSON.parse(output) as WorkResult
  }
}

async function run(bench: Bench) {
  const { cleanUp, sizes, progress } = bench
  const python = pythonRunner(await pythonProgram(), cleanUp)
  const node = startHelper<WorkerCalls>(new URL('../workers/typescript-process.ts', import.meta.url), cleanUp)
  const baton = await startBaton({ dataFolder: temporaryFolder('data', cleanUp) }, cleanUp)
  const backlog = backlogOf(startLoad(bench), baton.url)
  const input = { urls: [baton.url] as [string], concurrency: CONCURRENCY }
  const contender = (label: string, work: (input: WorkInput) => Promise<WorkResult>): Contender =>
    workerContender({ label, input, backlog, watched: [baton.pid], work })
  const workers = {
    typescript: contender('TypeScript, Worker', (input) => node.call('worker', input)),
    python: contender('Python, Worker', (input) => python('worker', input)),
    typescriptLoop: contender('TypeScript, loop of requests', (input) => node.call('loop', input)),
    pythonLoop: contender('Python, loop of requests', (input) => python('loop', input)),
  }
  const rows = await interleave(Object.values(workers), sizes, progress)
  const row = (name: keyof typeof workers) => rowOf(rows, workers[name])
  return {
    rows,
    figures: [
      quotient('Worker, Python ÷ TypeScript', row('python'), row('typescript'), { atLeast: 0.7 }),
      quotient('TypeScript, Worker ÷ loop', row('typescript'), row('typescriptLoop')),
      quotient('Python, Worker ÷ loop', row('python'), row('pythonLoop')),
    ],
    notes: [
      `One process with ${CONCURRENCY} handlers that do nothing, or ${CONCURRENCY} loops, each with one partition in a request.`,
    ],
  }
}

export const pythonWorker: Scenario = {
  name: 'python-worker',
  title: 'Workers in Python and TypeScript with empty handlers, SQLite',
  run,
}
