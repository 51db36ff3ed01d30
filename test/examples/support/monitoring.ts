import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

export const monitoring = fileURLToPath(new URL('../../../examples/monitoring/', import.meta.url))

export interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string }
}

export interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

export interface Dashboard {
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { readonly query: string } }[]
  }
}

export const readYaml = (path: string): unknown => parse(readFileSync(path, 'utf8'))

export function readRules(): readonly Rule[] {
  const { groups } = readYaml(`${monitoring}baton.rules.yml`) as { groups: { rules: Rule[] }[] }
  return groups.flatMap(({ rules }) => rules)
}

export const readDashboard = (): Dashboard =>
  JSON.parse(readFileSync(`${monitoring}grafana-dashboard.json`, 'utf8'))
