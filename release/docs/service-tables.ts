import { errorCodes } from '@baton/protocol'
import { settingRows } from '../../packages/server/src/command-line.ts'
import { clientLimits } from '../../packages/server/src/http/limits/limits.ts'
import { metricsOfNode, metricsOfStore } from '../../packages/server/src/http/observability/metrics.ts'
import { code, codes, table } from './table.ts'

// Tables of what the service declares: settings, bounds, metrics and error codes.

export const settingsTable = (): string =>
  table(
    ['flag', 'environment', 'default', 'meaning'],
    settingRows().map(({ flag, variable, standard, meaning }) => [
      code(flag),
      code(variable),
      isValue(standard) ? code(standard) : standard,
      meaning,
    ]),
  )

/** A default that can be typed, and not a description of one. */
const isValue = (standard: string) => standard !== 'none' && !standard.includes(' ')

export const boundsTable = (): string =>
  table(
    ['bound', 'setting', 'what happens'],
    Object.entries(clientLimits).map(([name, { flag, effect }]) => [code(name), code(flag), effect]),
  )

const metricsTable = (metrics: typeof metricsOfNode): string =>
  table(
    ['metric', 'type', 'labels', 'meaning'],
    metrics.map(({ name, type, labels, meaning }) => [code(name), type, codes(labels), meaning]),
  )

export const nodeMetricsTable = (): string => metricsTable(metricsOfNode)
export const storeMetricsTable = (): string => metricsTable(metricsOfStore)

export const errorCodesTable = (): string =>
  table(
    ['code', 'status', 'retryable', 'meaning', 'what to do'],
    Object.entries(errorCodes).map(([name, { status, retryable, meaning, remedy }]) => [
      code(name),
      String(status ?? '–'),
      retryable ? 'yes' : 'no',
      meaning,
      remedy,
    ]),
  )
