import { commandsTable, sharedFlagsTable } from './command-tables.ts'
import { limitsTable } from './limits-table.ts'
import {
  boundsTable,
  errorCodesTable,
  nodeMetricsTable,
  settingsTable,
  storeMetricsTable,
} from './service-tables.ts'

/** The parts of the docs that are generated. Each is in one page, between two comments that name it. */
export const blocks: Readonly<Record<string, () => string | Promise<string>>> = {
  settings: settingsTable,
  bounds: boundsTable,
  'metrics of a node': nodeMetricsTable,
  'metrics of the store': storeMetricsTable,
  'error codes': errorCodesTable,
  limits: limitsTable,
  'flags of many commands': sharedFlagsTable,
  commands: commandsTable,
}

const PLACE = /^<!-- generated: (.+) -->\n[\s\S]*?^<!-- end -->$/gm

/** The names of the generated parts of a page. */
export const blocksIn = (page: string): string[] => [...page.matchAll(PLACE)].map(([, name = '']) => name)

/** The page with its generated parts as they should be. */
export async function withBlocks(page: string): Promise<string> {
  const texts = new Map<string, string>()
  for (const name of blocksIn(page)) {
    const generate = blocks[name]
    if (generate === undefined) throw new Error(`nothing generates ${JSON.stringify(name)}`)
    texts.set(name, `<!-- generated: ${name} -->\n${await generate()}\n<!-- end -->`)
  }
  return page.replaceAll(PLACE, (_, name: string) => texts.get(name) ?? '')
}
