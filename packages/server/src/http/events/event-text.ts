import type { EventName } from '@baton/protocol'
import type { BatonEvent, Tick } from '../../handoff/events.ts'
import { viewInstance } from '../answers/instance-view.ts'
import { viewParked } from '../answers/partition-view.ts'
import { summariseTask } from '../answers/task-view.ts'

/** Each tick is written once, however many follow and whenever they catch up. */
const written = new WeakMap<Tick, Buffer>()

/**
 * A tick as it goes over the wire. The id stands with the last event alone: a connection that breaks in the middle
 * of a tick resumes before it, and hears the whole of it again. Without events it stands alone: readers remember it
 * and dispatch nothing.
 */
export function tickText(tick: Tick): Buffer {
  let text = written.get(tick)
  if (text === undefined) {
    const events = tick.events.map(eventText)
    const last = events.pop() ?? '\n'
    text = Buffer.from(`${events.join('')}id: ${tick.id}\n${last}`)
    written.set(tick, text)
  }
  return text
}

export function resetText(id: string): string {
  return `id: ${id}\n${eventText({ kind: 'reset' })}`
}

function eventText(event: BatonEvent): string {
  switch (event.kind) {
    case 'task':
      return named('task', summariseTask(event.row, event.now))
    case 'parked':
      return named('parked', viewParked(event.notice))
    case 'instance':
      return named('instance', viewInstance(event.instance))
    case 'reset':
      return named('reset', {})
  }
}

/** JSON has no raw line breaks, so one data line always holds it. */
function named(name: EventName, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
