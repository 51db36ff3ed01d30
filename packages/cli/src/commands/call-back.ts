import { type CallBackReceipt, type PartitionDescriptor, Producer } from '@baton/client'
import { type UnknownFields, unknownFieldRules } from '@baton/protocol/core'
import type { Arguments, Command } from '../command-line.ts'
import { connect, connectionFlags, located } from '../connection.ts'
import { exitCodes, interruptible, UsageError } from '../errors.ts'
import { checkSource, inLines, placeOf, tableFieldHint } from '../input/check.ts'
import { type Adapt, readValues, type Source } from '../input/json-values.ts'
import { givenSource, ReadWindow, spool } from '../input/spool.ts'
import { counted } from '../show/numbers.ts'
import { ProgressLine } from '../show/progress.ts'
import { print, printJson, shown } from '../terminal.ts'

export const callBack: Command = {
  operands: 'FILE|-',
  operandCount: [1, 1],
  details:
    'Calls back the partitions of one task: a JSON array of descriptors, or one descriptor per line (NDJSON), from a file\n' +
    'or from stdin. The whole input is checked before the first request. A large input is split into several requests.\n' +
    'Repeating the command after a failure is safe: stored partitions are recognized.',
  flags: {
    check: { kind: 'switch', description: 'only check the input, send nothing; works without a service' },
    'from-manifest': {
      kind: 'switch',
      description:
        'the input is the output of `baton manifest`: sends the descriptor of each line, including additional fields',
    },
    stream: { kind: 'switch', description: 'send while reading, for slow input' },
    seal: {
      kind: 'switch',
      description: 'also seal the task, in the request that stores the last partitions',
    },
    partitions: {
      kind: 'number',
      placeholder: 'N',
      description: 'with --seal: total number of partitions of the task',
    },
    'per-request': {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      default: 50_000,
      description:
        'maximum number of descriptors per request; each request is stored completely or not at all',
    },
    'unknown-fields': {
      kind: 'text',
      placeholder: 'RULE',
      choices: unknownFieldRules,
      variable: 'BATON_UNKNOWN_FIELDS',
      default: 'refuse',
      description: 'how the check treats additional fields; use the setting of the service',
    },
    ...connectionFlags,
    timeout: { ...connectionFlags.timeout, default: 300 },
  },
  examples: [
    { line: 'baton call-back partitions.ndjson', says: 'A file, checked first' },
    { line: 'compute | baton call-back --stream -', says: 'Partitions as a program computes them' },
    { line: 'baton call-back --seal partitions.ndjson', says: 'The whole task, then seal it' },
    {
      line: 'baton call-back --from-manifest parked.ndjson',
      says: 'Partitions exported from another service',
    },
    { line: 'baton call-back --check partitions.json', says: 'Only check the file' },
  ],
  run: (given) => interruptible((signal) => run(given, signal)),
}

async function run(given: Arguments, signal: AbortSignal): Promise<number> {
  if (given.number('partitions') !== undefined && !given.switch('seal'))
    throw new UsageError('--partitions requires --seal')
  const named = await givenSource(given.operands[0] ?? '-', signal)
  const source = given.switch('from-manifest') ? { ...named, adapt: describedBy(given) } : named
  if (given.switch('stream') && !given.switch('check')) {
    report(given, await send(given, source, undefined, signal))
    return exitCodes.ok
  }
  const comesOnce = source.size === undefined
  await using twice = comesOnce && !given.switch('check') ? await spool(source) : undefined
  const descriptors = await check(given, twice?.first ?? source, source.size, signal)
  if (given.switch('check')) {
    if (given.switch('json')) printJson({ descriptors })
    else print(`${counted(descriptors, 'descriptor')} conform to the contract`)
  } else report(given, await send(given, twice?.again ?? source, descriptors, signal))
  return exitCodes.ok
}

/**
 * Extracts the descriptor from a line of a manifest. A value that is not an object is passed on for the check
 * to report.
 */
function describedBy(given: Arguments): Adapt {
  const { tableField } = connect(given)
  const fields = ['taskId', tableField.name, 'partition_name', 'record_count', 'priorityLevel']
  return (line) => {
    if (typeof line !== 'object' || line === null || Array.isArray(line)) return line
    const described = Object.entries(line).filter(([name]) => fields.includes(name))
    const { fields: beyondContract = {} } = line as { fields?: object }
    return Object.fromEntries([...described, ...Object.entries(beyondContract)])
  }
}

const ruleOf = (given: Arguments) => given.textOrDefault('unknown-fields') as UnknownFields

async function check(
  given: Arguments,
  source: Source,
  size: number | undefined,
  signal: AbortSignal,
): Promise<number> {
  using progress = new ProgressLine('checking', size)
  return await checkSource(source, {
    tableField: connect(given).tableField.name,
    unknownFields: ruleOf(given),
    onBytes: (bytes) => {
      signal.throwIfAborted()
      progress.advance(bytes)
    },
  })
}

async function send(
  given: Arguments,
  source: Source,
  total: number | undefined,
  signal: AbortSignal,
): Promise<CallBackReceipt> {
  using progress = new ProgressLine('sending', total)
  const client = connect(given)
  const producer = new Producer(client, {
    unknownFields: ruleOf(given),
    descriptorsPerRequest: given.numberOrDefault('per-request'),
    retryForSeconds: given.numberOrDefault('timeout'),
  })
  let sent = 0
  const reads = new ReadWindow()
  const lineOf = (position: number) => reads.at(position)?.line
  try {
    return await producer.callBack(descriptorsOf(source, reads), {
      signal,
      ...(given.switch('seal') ? { seal: given.number('partitions') ?? true } : {}),
      onProgress: (now) => {
        progress.advance(now.sent - sent)
        sent = now.sent
        reads.forget(sent)
      },
      ...(process.stderr.isTTY ? { onFailure: ({ error }) => progress.say(error.message) } : {}),
    })
  } catch (error) {
    return located({
      placeOf: (pointer) => placeOf(source.name, pointer, lineOf),
      inItsTerms: (detail) => inLines(detail, lineOf),
      hintFor: (errors) =>
        tableFieldHint(errors, client.tableField.name, (position) => reads.at(position)?.value),
    })(error)
  }
}

async function* descriptorsOf(
  source: Source,
  reads: ReadWindow,
): AsyncGenerator<PartitionDescriptor, void, undefined> {
  for await (const read of readValues(source)) {
    reads.add(read)
    yield read.value as PartitionDescriptor
  }
}

function report(given: Arguments, receipt: CallBackReceipt): void {
  if (given.switch('json')) printJson(receipt)
  else {
    const { taskId, accepted, duplicates, requests } = receipt
    const known = duplicates > 0 ? `, ${duplicates} already stored` : ''
    const parts = requests > 1 ? `, in ${requests} requests` : ''
    const sealed = given.switch('seal') ? '; the task is sealed' : ''
    print(`${shown(taskId)}: ${counted(accepted, 'partition')} accepted${known}${parts}${sealed}`)
  }
}
