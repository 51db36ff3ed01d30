import { Agent, request } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

const WORKERS = 8
const PER_CALL_BACK = 2000
const REFILL_BELOW = 4000
const TELL_EVERY_MILLIS = 100

interface Leased {
  readonly partitions: readonly { readonly lease: { readonly id: string } }[]
}

export interface SteadyClients {
  readonly port: number
  /** Their source address. */
  readonly address: string
  readonly isSecure: boolean
  /** Sent with each request. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Honest clients at full speed: a producer, and workers that settle and pull in one request. Reports how many
 * partitions are done.
 */
const { port, address, isSecure, headers: always } = workerData as SteadyClients
const options = { keepAlive: true, localAddress: address }
const agent = isSecure ? new SecureAgent({ ...options, rejectUnauthorized: false }) : new Agent(options)
const send = isSecure ? secureRequest : request
let isStopped = false
let done = 0
let open = 0
let tasks = 0
parentPort?.once('message', () => {
  isStopped = true
})
const telling = setInterval(() => parentPort?.postMessage(done), TELL_EVERY_MILLIS)
await Promise.all([produce(), ...Array.from({ length: WORKERS }, work)])
clearInterval(telling)
agent.destroy()

async function produce(): Promise<void> {
  while (!isStopped) {
    if (open >= REFILL_BELOW) {
      await pause(10)
      continue
    }
    const taskId = `steady-${tasks++}`
    const array = Array.from({ length: PER_CALL_BACK }, (_, index) => ({
      taskId,
      computeTableName: 'steady.table',
      partition_name: `${taskId}-0-${index}`,
      record_count: 1,
      priorityLevel: 0,
    }))
    await insist('POST', '/call-back', array)
    open += PER_CALL_BACK
  }
}

async function work(): Promise<void> {
  let leased: readonly string[] = []
  while (!isStopped) {
    const settlements = leased.map((leaseId) => ({ leaseId, outcome: 'done' }))
    const answer =
      leased.length === 0
        ? await insist<Leased>('GET', '/pull?wait=1')
        : await insist<Leased>('POST', '/settle?batch=1&wait=1', settlements)
    done += leased.length
    open -= leased.length
    leased = answer?.partitions.map(({ lease }) => lease.id) ?? []
  }
}

/** Sends it until it is answered with 200; undefined when stopped. */
async function insist<Answer>(method: string, path: string, body?: unknown): Promise<Answer | undefined> {
  const text = body === undefined ? '' : JSON.stringify(body)
  while (!isStopped) {
    const answer = await ask(method, path, text)
    if (answer !== undefined) return JSON.parse(answer) as Answer
    await pause(20)
  }
  return undefined
}

function ask(method: string, path: string, body: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const ofBody =
      body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const headers = { ...always, ...ofBody }
    const asked = send({ host: '127.0.0.1', port, agent, method, path, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      answer.on('end', () => resolve(answer.statusCode === 200 ? text : undefined))
      answer.on('error', () => resolve(undefined))
    })
    asked.on('error', () => resolve(undefined)).end(body)
  })
}
