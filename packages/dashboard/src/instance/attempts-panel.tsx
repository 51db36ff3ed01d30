import type { InstanceAttempt, InstanceStatus } from '@baton/protocol'
import { brief, exact, lastLine, percent } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { Scrolling } from '../parts/panel.tsx'
import { Head, Name } from '../parts/table.tsx'
import { partitionHref } from '../route.ts'
import { client } from '../service/connection.ts'
import { useReading } from '../service/reading.ts'

/** The last attempts of a worker, the latest first: whether it fails, how long it takes, and why. */
export function AttemptsPanel({ instance }: { instance: InstanceStatus }) {
  const { instanceId, totals } = instance
  const { loaded } = useReading(
    () => client.peek().instanceAttempts(instanceId),
    [instanceId],
    JSON.stringify(totals),
  )
  if (loaded.kind !== 'there') return null
  const { attempts, since } = loaded.value
  const bad = attempts.filter(({ outcome }) => outcome === 'failed' || outcome === 'expired').length
  return (
    <section class="panel" aria-labelledby="attempts-title">
      <header class="panel-head">
        <h2 id="attempts-title">Last attempts</h2>
        <p class="muted">
          {attempts.length === 0
            ? ''
            : `${percent(bad, attempts.length)} of ${exact(attempts.length)} failed or expired`}
        </p>
      </header>
      {attempts.length === 0 ? (
        <p class="quiet">
          No attempt has ended since the leader took over <Ago at={since} />.
        </p>
      ) : (
        <Scrolling label="Rows of attempts" kind="level-rows">
          <table class="held">
            <Head
              columns={[
                'Partition',
                'Outcome',
                ['Took', 'number'],
                ['Ended', 'wide-only'],
                ['Reason', 'wide-only'],
              ]}
            />
            <tbody>
              {attempts.map((attempt) => (
                <AttemptRow key={`${attempt.partition_name} ${attempt.startedAt}`} attempt={attempt} />
              ))}
            </tbody>
          </table>
        </Scrolling>
      )}
    </section>
  )
}

function AttemptRow({ attempt }: { attempt: InstanceAttempt }) {
  const { partition_name, outcome, startedAt, endedAt, reason } = attempt
  const isBad = outcome === 'failed' || outcome === 'expired'
  return (
    <tr>
      <th scope="row">
        <Name text={partition_name} href={partitionHref(partition_name)} />
        {reason === null ? null : <span class="under narrow-only">{lastLine(reason)}</span>}
      </th>
      <td class={isBad ? 'alarm' : undefined}>{outcome}</td>
      <td class="number">{brief((Date.parse(endedAt) - Date.parse(startedAt)) / 1000)}</td>
      <td class="wide-only">
        <Ago at={endedAt} />
      </td>
      <td class="wide-only cut" title={reason ?? undefined}>
        {reason === null ? '' : lastLine(reason)}
      </td>
    </tr>
  )
}
