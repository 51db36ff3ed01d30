import { expect } from 'vitest'
import type { ServiceProcess } from '../../../../test/support/service-process.ts'
import { descriptors } from './test-app.ts'

export const MIB = 2 ** 20
/** The limit for the process with the largest bodies in it. */
export const MOST_MEMORY = 700 * MIB
export const json = { 'content-type': 'application/json' }

export const callBack = (url: string, body: string | Buffer, headers = {}) =>
  fetch(`${url}/call-back`, { method: 'POST', headers: { ...json, ...headers }, body })

/** Checks that the service is alive and serves a producer and a worker. */
export async function expectServing({ url }: ServiceProcess, task: string): Promise<void> {
  expect((await fetch(`${url}/livez`)).status).toBe(200)
  const answer = await callBack(url, JSON.stringify(descriptors(task, 4000)))
  expect(await answer.json()).toMatchObject({ accepted: 4000 })
  const pulled = (await (await fetch(`${url}/pull`)).json()) as { partitions: unknown[] }
  expect(pulled.partitions).toHaveLength(1)
}

export async function measured({ url }: Pick<ServiceProcess, 'url'>, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1],
  )
}

export const reached = (service: ServiceProcess, bound: string) =>
  measured(service, `baton_bounds_met_total{bound="${bound}"}`)
