import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptor, descriptors } from '../../client/test/support/descriptors.ts'
import { rowsOf } from '../../client/test/support/partition-states.ts'
import { startService } from '../../client/test/support/service.ts'
import { baton } from './support/baton.ts'
import { Scratch } from './support/scratch.ts'

const untilIdle = ['work', '--until-idle', '--wait', '0']
/** Failed partitions are not retried for the rest of a test. */
const patient = ['--backoff-seconds', '3600', '--backoff-max-seconds', '3600']

describe('the exit code of the command', () => {
  test('0 settles as done; the descriptor is on stdin and in the environment, and a report is returned', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack([descriptor('orders', 0, 0, 7), descriptor('orders', 2, 5, 9)])
    const scratch = new Scratch()
    const script = `
      cat > "$OUT/$BATON_PARTITION_NAME.stdin"
      env | grep ^BATON_ | sort > "$OUT/$BATON_PARTITION_NAME.env"
      echo "{\\"records\\": $BATON_RECORD_COUNT}" > "$BATON_REPORT"
      echo "loaded $BATON_PARTITION_NAME"`
    const { code, stdout, stderr } = await baton([...untilIdle, '--', 'sh', '-c', script], {
      url,
      // The token belongs to the worker, and must not be in the environment of the command.
      env: { OUT: scratch.path, BATON_TOKEN: 'sesame' },
    })
    expect(stderr).toContain('2 partitions done, 0 failed')
    expect(code).toBe(0)
    expect(stdout).toBe('loaded orders-0-0\nloaded orders-2-5\n')
    expect(JSON.parse(scratch.read('orders-2-5.stdin'))).toEqual(descriptor('orders', 2, 5, 9))
    expect(
      scratch.lines('orders-2-5.env').filter((line) => !/_LEASE_ID|_FENCING|_REPORT|_FILE/.test(line)),
    ).toEqual([
      'BATON_ATTEMPT=1',
      'BATON_COMPUTE_TABLE_NAME=results.orders',
      'BATON_PARTITION_NAME=orders-2-5',
      'BATON_PRIORITY_LEVEL=2',
      'BATON_RECORD_COUNT=9',
      'BATON_TASK_ID=orders',
      `BATON_URL=${url}`,
    ])
    expect(scratch.read('orders-2-5.env')).toMatch(/^BATON_FENCING_TOKEN=\d{13}$/m)
    expect(await rowsOf(client, 'orders')).toMatchObject([
      { state: 'done', reportedRecords: 7 },
      { state: 'done', reportedRecords: 9 },
    ])
  })

  test('other than 0 settles as failed with the end of stderr; 100 is not retried; 75 releases', async () => {
    const { url } = await startService(...patient)
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 7, 1))
    const script = `
      case "$BATON_PARTITION_NAME" in
        *-0) seq 1 5000 >&2; echo "table is locked" >&2; exit 3 ;;
        *-1) exit 100 ;;
        *-2) echo '{"retryAfterSeconds": 3600, "reason": "not on this machine"}' > "$BATON_REPORT"; exit 75 ;;
        *-3) kill -9 $$ ;;
        *-4) echo "no JSON" > "$BATON_REPORT" ;;
        *-5) echo '{"records": -4, "retryAfterSeconds": "soon", "more": 1}' > "$BATON_REPORT" ;;
        *-6) echo '{"records": 1e99}' > "$BATON_REPORT" ;;
      esac`
    const { code, stderr } = await baton([...untilIdle, '--', 'sh', '-c', script], { url })
    expect(stderr).toContain('orders-0-0 started (1 record)')
    expect(stderr).toContain('3 partitions done, 3 failed, 1 released')
    for (const complaint of [
      'orders-0-4: the report of the command is not a JSON object: no JSON\n',
      'orders-0-5: records in the report of the command must be a non-negative integer, got -4\n',
      'orders-0-5: retryAfterSeconds in the report of the command must be a non-negative number, got "soon"\n',
      'orders-0-6: records in the report of the command must be a non-negative integer, got 1e+99\n',
    ]) {
      expect(stderr).toContain(complaint)
    }
    expect(stderr).not.toContain('\n\n')
    expect(code).toBe(1)
    const rows = await rowsOf(client, 'orders')
    expect(rows).toMatchObject([
      { state: 'delayed' },
      { state: 'parked', lastReason: 'exit code 100' },
      { state: 'delayed', attempts: 0, lastReason: 'not on this machine' },
      { state: 'delayed', lastReason: 'stopped by SIGKILL' },
      { state: 'done' },
      { state: 'done', reportedRecords: null },
      { state: 'done', reportedRecords: null },
    ])
    expect(rows[0]?.lastReason).toMatch(/^exit code 3: …\d+\n[\s\S]*\n5000\ntable is locked$/)
  })

  test('is 126 or 127, as in a shell, if it cannot be run, and no attempt is used', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await client.callBack(descriptors('orders', 2))
    const missing = await baton(['work', '--', 'no-such-command'], { url })
    expect(missing).toMatchObject({ code: 127 })
    expect(missing.stderr).toBe('baton: no-such-command cannot be run (ENOENT); nothing was pulled\n')
    // Before any request to the service, which need not be running.
    expect(await baton(['work', '--', './nope.sh'], { url: 'http://127.0.0.1:2' })).toMatchObject({
      code: 127,
    })
    expect(await baton(['work', '--', '/tmp'], { url })).toMatchObject({ code: 126 })
    const scratch = new Scratch()
    expect(await baton(['work', '--', scratch.file('plain.txt', 'text')], { url })).toMatchObject({
      code: 126,
    })
    expect(await rowsOf(client, 'orders')).toMatchObject([
      { state: 'ready', attempts: 0 },
      { state: 'ready', attempts: 0 },
    ])
  })
})

test('the log shows whether a failed partition is retried', async () => {
  const { url } = await startService('--max-attempts', '2')
  await new BatonClient(url).callBack(descriptors('orders', 2))
  const script = 'case "$BATON_PARTITION_NAME" in *-0) exit 3;; *) exit 100;; esac'
  const { stderr } = await baton([...untilIdle, '--', 'sh', '-c', script], { url })
  expect(stderr).toMatch(/orders-0-0 failed, will be retried after .*: exit code 3/)
  expect(stderr).toMatch(/orders-0-1 failed, parked after .*: exit code 100/)
})

test('a partition that is released repeatedly fails in the end', async () => {
  const { url } = await startService('--max-attempts', '1', '--backoff-seconds', '0')
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 1))
  const { code, stderr } = await baton(
    ['work', '--until-idle', '--wait', '5', '--give-back-limit', '3', '--', 'sh', '-c', 'exit 75'],
    { url },
  )
  expect(stderr.match(/orders-0-0 released after/g)).toHaveLength(3)
  expect(stderr).toMatch(
    /orders-0-0 failed, parked after .*: released more than 3 times in a row: exit code 75/,
  )
  expect(code).toBe(1)
  expect(await rowsOf(client, 'orders')).toMatchObject([{ state: 'parked', attempts: 1 }])
})

test('with --json, all of stderr is lines of JSON, also the output of commands', async () => {
  const { url } = await startService()
  await new BatonClient(url).callBack(descriptors('orders', 1))
  const script = 'echo one >&2; printf two >&2; printf " of two\\nlast words" >&2'
  const { stderr } = await baton([...untilIdle, '--json', '--', 'sh', '-c', script], { url })
  const events = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const written = events.filter(({ kind }) => kind === 'stderr')
  expect(written.map(({ text }) => text)).toEqual(['one', 'two of two', 'last words'])
  expect(written[0]).toMatchObject({ taskId: 'orders', partition_name: 'orders-0-0' })
})

test('a command can write its report although its folder was removed meanwhile', async () => {
  const { url } = await startService()
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 2))
  const script = 'echo "{\\"records\\": 7}" > "$BATON_REPORT" && rm -r "$(dirname "$BATON_REPORT")"'
  expect(await baton(['work', '--until-idle', '--', 'sh', '-c', script], { url })).toMatchObject({ code: 0 })
})

test('64 commands run at once', async () => {
  const { url } = await startService()
  const client = new BatonClient(url)
  await client.callBack(descriptors('orders', 64))
  const scratch = new Scratch()
  // None ends before all have started.
  const script = `
    touch "$OUT/$BATON_PARTITION_NAME"
    while [ "$(ls "$OUT" | wc -l)" -lt 64 ]; do sleep 0.2; done`
  const { code, stderr } = await baton([...untilIdle, '--concurrency', '64', '--', 'sh', '-c', script], {
    url,
    env: { OUT: scratch.path },
  })
  expect(code).toBe(0)
  expect(stderr).toContain('64 partitions done')
  expect(scratch.names()).toHaveLength(64)
  expect(await client.task('orders')).toMatchObject({ state: 'done', attemptsWasted: 0 })
})
