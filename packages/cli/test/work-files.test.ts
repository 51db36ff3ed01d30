import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'
import { rowsOf } from '../../client/test/support/partition-states.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton, startBaton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

const untilIdle = ['work', '--until-idle', '--wait', '0']

test('a command goes on from the checkpoint that an earlier one wrote', async () => {
  const { url } = await startService('--backoff-seconds', '0')
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 1))
  const scratch = new Scratch()
  const script = `
    cat "$BATON_CHECKPOINT_FILE" >> "$OUT/seen"; echo "|" >> "$OUT/seen"
    case "$BATON_ATTEMPT$(cat "$BATON_CHECKPOINT_FILE")" in
      1) printf 'page 1' > "$BATON_CHECKPOINT_FILE"; exit 3 ;;
      "2page 1") printf 'page 2' > "$BATON_CHECKPOINT_FILE"; exit 75 ;;
      "2page 2") exit 3 ;;
      "3page 2") : > "$BATON_CHECKPOINT_FILE"; exit 3 ;;
    esac`
  const run = () => baton([...untilIdle, '--', 'sh', '-c', script], { url, env: { OUT: scratch.path } })
  await until(async () => {
    await run()
    return (await client.task('orders')).state === 'done'
  })
  expect(scratch.read('seen')).toBe('|\npage 1|\npage 2|\npage 2|\n|\n')
})

test('what a command writes while it runs is shown', async () => {
  const { url } = await startService()
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 1, 100))
  const scratch = new Scratch()
  const script = `
    echo '{"records": 40, "note": "sorting"}' > "$BATON_PROGRESS_FILE"
    printf 'page 2' > "$BATON_CHECKPOINT_FILE"
    while [ ! -e "$OUT/go" ]; do sleep 0.1; done`
  const worker = startBaton([...untilIdle, '--', 'sh', '-c', script], { url, env: { OUT: scratch.path } })
  await until(async () => (await rowsOf(client, 'orders'))[0]?.checkpoint === 'page 2')
  await until(async () => (await rowsOf(client, 'orders'))[0]?.progress !== undefined)
  expect(await rowsOf(client, 'orders')).toMatchObject([{ progress: { records: 40, note: 'sorting' } }])
  const { stdout } = await baton(['partitions', 'orders'], { url })
  expect(stdout).toContain('40 of 100: sorting')
  scratch.file('go', '')
  await worker.ended
  expect((await rowsOf(client, 'orders'))[0]).not.toHaveProperty('checkpoint')
})

test('a checkpoint that is too long and progress that cannot be read are complained about', async () => {
  const { url } = await startService('--max-attempts', '1')
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 1))
  const script = `
    echo nonsense > "$BATON_PROGRESS_FILE"
    seq 1 5000 > "$BATON_CHECKPOINT_FILE"
    exit 3`
  const { stderr } = await baton([...untilIdle, '--', 'sh', '-c', script], { url })
  expect(stderr).toContain('a checkpoint has at most 4096 bytes of UTF-8')
  expect(stderr).toContain('the progress of the command must be a number or a JSON object, got nonsense')
  expect((await rowsOf(client, 'orders'))[0]).not.toHaveProperty('checkpoint')
})
