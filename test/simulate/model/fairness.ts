import { disagree } from './disagreement.ts'
import type { ModelLane } from './model-task.ts'

interface Lead {
  /** The epochs of the two lanes when it began. */
  readonly ofEpoch: number
  readonly overEpoch: number
  records: number
}

/**
 * Over any interval in which two lanes of a level both have work, what they were handed differs by at
 * most the sum of their largest partitions, each divided by the smallest weight that its task had. For each
 * pair of lanes, this records the largest lead of one over the other.
 */
export class Fairness {
  private readonly leads = new Map<ModelLane, Map<ModelLane, Lead>>()

  /** A partition of this cost is handed out; `servable` are the lanes that could be served instead. */
  served(lane: ModelLane, cost: number, servable: ReadonlySet<ModelLane>): void {
    // Those of which only blocked tables wait, for example.
    for (const other of this.leads.keys())
      if (other.level === lane.level && !servable.has(other)) other.epoch += 1
    for (const other of servable) {
      if (other === lane || other.level !== lane.level) continue
      const ahead = this.lead(lane, other)
      ahead.records += charged(cost, lane.task.weight)
      const behind = this.lead(other, lane)
      behind.records = Math.max(0, behind.records - charged(cost, lane.task.weight))
      if (ahead.records > largest(lane) + largest(other))
        disagree(
          `level ${lane.level}: ${lane.task.taskId} was handed ${ahead.records} records more than ` +
            `${other.task.taskId}; their largest partitions are ${lane.largestCost} and ${other.largestCost}`,
        )
    }
  }

  private lead(of: ModelLane, over: ModelLane): Lead {
    let leads = this.leads.get(of)
    if (leads === undefined) {
      leads = new Map()
      this.leads.set(of, leads)
    }
    let lead = leads.get(over)
    if (lead === undefined || lead.ofEpoch !== of.epoch || lead.overEpoch !== over.epoch) {
      lead = { ofEpoch: of.epoch, overEpoch: over.epoch, records: 0 }
      leads.set(over, lead)
    }
    return lead
  }
}

const charged = (cost: number, weight: number): number => Math.max(1, Math.round(cost / weight))

const largest = ({ task, largestCost }: ModelLane): number => charged(largestCost, task.leastWeight)
