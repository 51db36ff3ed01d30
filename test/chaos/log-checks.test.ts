import { expect, test } from 'vitest'
import type { Disturbance, FleetNode } from './support/fleet.ts'
import { checkLogs, errorIn } from './support/log-checks.ts'
import { Findings } from './support/scene.ts'

test('an error in a log is a finding, unless a disturbance before it explains it', async () => {
  const errors = [
    errorIn('{"level":50,"time":9000,"msg":"the store cannot commit"}', 500),
    errorIn('{"level":50,"time":0,"msg":"the store cannot commit"}', 1500),
    errorIn('{"level":60,"time":0,"msg":"the service ends"}', 1600),
  ].flatMap((error) => error ?? [])
  const node: FleetNode = { name: 'north', url: '', isAway: false, ends: 0, log: '', errors }
  const disturbance: Disturbance = { name: 'crash', explains: [/cannot commit/], happen: async () => {} }
  const findings = new Findings()
  checkLogs([node], [{ disturbance, at: 1000 }], findings)
  expect(findings.all).toEqual([`north logged ${errors[0]?.line}`, `north logged ${errors[2]?.line}`])
  expect(errorIn('{"level":40,"time":1,"msg":"a warning"}', 1)).toBeUndefined()
  expect(errorIn('(node:1) Warning: of the runtime', 1)).toBeUndefined()
})
