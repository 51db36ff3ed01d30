import type { DatabaseSync } from 'node:sqlite'
import type { Images } from '../../handoff/disk.ts'
import type { NextIds } from '../../handoff/stored.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/views/eta.ts'
import { InstanceRows } from './instance-rows.ts'
import { OutboxRows } from './outbox-rows.ts'
import { Ranges } from './ranges.ts'
import { keys, lanes, laneTables, levels, query, statuses, tableSettings, tasks } from './tables.ts'
import { ThroughputRows } from './throughput-rows.ts'

/** Writes the images of a flush to rows. Must be called within a transaction. */
export class ImageRows {
  readonly #sql: ReturnType<typeof prepare>
  readonly #ranges: Ranges
  readonly outbox: OutboxRows
  readonly #instances: InstanceRows
  readonly throughput: ThroughputRows

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
    this.#ranges = new Ranges(db)
    this.outbox = new OutboxRows(db)
    this.#instances = new InstanceRows(db)
    this.throughput = new ThroughputRows(db)
  }

  nextIds(): NextIds {
    const found = this.#sql.nextIds.get() ?? { task: 1, lane: 1, partition: 1, event: 1 }
    const { task, lane, partition, event } = found
    return { task, lane, partition, event }
  }

  write(images: Images): void {
    const { nextIds } = images
    this.#writeTasks(images)
    for (const lane of images.lanes.values()) this.#sql.lane.run(...lanes.values(lane))
    for (const level of images.levels.values()) this.#sql.level.run(...levels.values(level))
    for (const row of images.laneTables.values()) this.#sql.laneTable.run(...laneTables.values(row))
    for (const [id, status] of images.partitions) {
      if (status === null) this.#sql.removePartition.run(id)
      else {
        const values = statuses.values(status)
        // A call with one spread array is faster than one with further arguments.
        values.push(id)
        this.#sql.partition.run(...values)
      }
    }
    for (const range of images.ranges) this.#ranges.add(range)
    for (const [key, image] of images.keys) {
      if (image === null) this.#sql.forgetKey.run(key)
      else this.#sql.key.run(...keys.values(image))
    }
    for (const [table, row] of images.tableSettings) {
      if (row === null) this.#sql.forgetTableSettings.run(table)
      else this.#sql.tableSettings.run(...tableSettings.values(row))
    }
    this.#writePace(images)
    this.#writeInstances(images)
    this.outbox.write(images.outbox)
    this.throughput.add(images.throughput.values())
    if (nextIds !== null) this.setNextIds(nextIds)
  }

  setNextIds({ task, lane, partition, event }: NextIds): void {
    this.#sql.setNextIds.run(task, lane, partition, event)
  }

  #writeTasks(images: Images): void {
    for (const task of images.tasks.values()) {
      this.#sql.task.run(...tasks.values(task))
      if (task.purgedAt !== null) this.#sql.purging.run(task.id)
    }
    for (const [task, names] of images.tables) for (const name of names) this.#sql.table.run(task, name)
  }

  #writePace({ pace }: Images): void {
    const changed = new Set<number>()
    for (const [key, image] of pace) {
      if (image === null) this.#sql.forgetPace.run(Number(key.split(':', 1)[0]))
      else {
        this.#sql.pace.run(image.task, image.second, image.partitions, image.records)
        changed.add(image.task)
      }
    }
    for (const task of changed) this.#sql.trimPace.run(task, task, PACE_SECONDS_KEPT - 1)
  }

  #writeInstances({ produced, instances, totals }: Images): void {
    for (const { task, instance, at } of produced.values()) this.#sql.produced.run(instance, task, at)
    for (const { instanceId, role, at } of instances.values())
      this.#sql.instance.run(instanceId, role, at, at)
    this.#instances.add(totals.values())
  }
}

function prepare(db: DatabaseSync) {
  const assignStatus = statuses.names.map((name) => `${name} = ?`).join(', ')
  return {
    task: db.prepare(tasks.upsert('id', 'task_id')),
    purging: db.prepare('INSERT INTO purging (task) VALUES (?) ON CONFLICT DO NOTHING'),
    table: db.prepare('INSERT INTO task_table (task, name) VALUES (?, ?) ON CONFLICT DO NOTHING'),
    lane: db.prepare(lanes.upsert('id', 'task', 'level', 'name')),
    level: db.prepare(levels.upsert('level')),
    laneTable: db.prepare(laneTables.upsertBy(['lane', 'name'])),
    partition: db.prepare(`UPDATE partition SET ${assignStatus} WHERE id = ?`),
    removePartition: db.prepare('DELETE FROM partition WHERE id = ?'),
    key: db.prepare(keys.upsert('key')),
    forgetKey: db.prepare('DELETE FROM pull_key WHERE key = ?'),
    pace: db.prepare(
      `INSERT INTO pace (task, second, partitions, records) VALUES (?, ?, ?, ?)
       ON CONFLICT (task, second) DO UPDATE SET partitions = excluded.partitions, records = excluded.records`,
    ),
    tableSettings: db.prepare(tableSettings.upsert('name')),
    forgetTableSettings: db.prepare('DELETE FROM table_settings WHERE name = ?'),
    forgetPace: db.prepare('DELETE FROM pace WHERE task = ?'),
    trimPace: db.prepare(
      `DELETE FROM pace WHERE task = ? AND second <
         (SELECT second FROM pace WHERE task = ? ORDER BY second DESC LIMIT 1 OFFSET ?)`,
    ),
    produced: db.prepare(
      `INSERT INTO produced_task (instance, task, last_call_back_at) VALUES (?, ?, ?)
       ON CONFLICT (instance, task) DO UPDATE SET last_call_back_at = excluded.last_call_back_at`,
    ),
    instance: db.prepare(
      `INSERT INTO instance (instance_id, role, first_seen_at, last_seen_at) VALUES (?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
    ),
    nextIds: query<NextIds>(
      db,
      'SELECT next_task AS task, next_lane AS lane, next_partition AS partition, next_event AS event FROM head WHERE id = 1',
    ),
    setNextIds: db.prepare(
      'UPDATE head SET next_task = ?, next_lane = ?, next_partition = ?, next_event = ? WHERE id = 1',
    ),
  }
}
