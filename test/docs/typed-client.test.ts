import { execFile } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import generateTypes from 'openapi-typescript'
import { expect, test } from 'vitest'
import { startService } from '../../packages/client/test/support/service.ts'
import { testFolder } from '../support/test-folder.ts'

const execute = promisify(execFile)
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

/** As a user would write it. The lines after `@ts-expect-error` must not compile, so the types are not `any`. */
const program = `
import createClient from 'openapi-fetch'
import type { components, paths } from './baton.ts'

const baton = createClient<paths>({ baseUrl: process.argv[2] ?? '' })

const partition: components['schemas']['PartitionDescriptor'] = {
  taskId: 'typed', computeTableName: 'results.typed', partition_name: 'typed-0-0', record_count: 7, priorityLevel: 0,
}
const calledBack = await baton.POST('/call-back', { body: [partition] })
const accepted: number | undefined = calledBack.data?.accepted
const pulled = await baton.GET('/pull', { params: { query: { batch: 2 } } })
const [first] = pulled.data?.partitions ?? []
const leaseId: string = first?.lease?.id ?? ''
const settled = await baton.POST('/settle', { body: [{ leaseId, outcome: 'done', records: 7 }] })
const { data: task } = await baton.GET('/tasks/{taskId}', { params: { path: { taskId: 'typed' } } })
const { error } = await baton.GET('/tasks/{taskId}', { params: { path: { taskId: 'unknown' } } })
console.log(JSON.stringify({ accepted, settled: settled.data?.settled.length, state: task?.state, code: error?.code }))

async function misuse() {
  // @ts-expect-error
  await baton.POST('/settle', { body: [{ leaseId, outcome: 'finished' }] })
  // @ts-expect-error
  await baton.GET('/tasks/{taskId}', {})
  // @ts-expect-error
  task?.unheardOf
}
void misuse
`

const compilerOptions = {
  target: 'es2024',
  module: 'nodenext',
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  types: ['node'],
}

test('a typed client that is generated from the API document compiles, and works', async () => {
  const { url } = await startService()
  const folder = await testFolder()
  await symlink(modules, `${folder}/node_modules`)
  const files = {
    'baton.ts': await generateTypes(`${url}/openapi.json`),
    'program.ts': program,
    'package.json': '{"type": "module"}',
    'tsconfig.json': JSON.stringify({ compilerOptions, include: ['*.ts'] }),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(`${folder}/${name}`, text)
  await execute(process.execPath, [`${modules}/typescript/bin/tsc`, '-p', folder])
  const { stdout } = await execute(process.execPath, [`${folder}/program.ts`, url])
  expect(JSON.parse(stdout)).toEqual({ accepted: 1, settled: 1, state: 'done', code: 'task_unknown' })
})
