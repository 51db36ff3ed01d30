import { join } from 'node:path'
import type { MemberOptions, PatroniMember } from './patroni-member.ts'

/**
 * A configuration for a cluster that must not lose a commit, with timeouts that make a fail-over take
 * seconds: a primary that crashes is replaced at once, one whose Patroni is silent after `ttl`. Newer
 * versions of Patroni raise `ttl` to 20 s.
 */
const CLUSTER = {
  ...{ ttl: 8, loop_wait: 1, retry_timeout: 3 },
  ...{ synchronous_mode: true, synchronous_mode_strict: true },
  primary_start_timeout: 0,
  postgresql: {
    use_pg_rewind: true,
    use_slots: true,
    // Tests kill processes and not machines, so nothing needs to be synced to disk. Rewinding needs full-page
    // writes.
    parameters: { fsync: 'off', full_page_writes: 'on', wal_keep_size: '256MB', shared_buffers: '64MB' },
  },
}

const TRUSTED = ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust']

/** The configuration file of a member's Patroni. It is YAML, of which JSON is a subset. */
export function patroniConfiguration(
  { name, port, apiPort }: Pick<PatroniMember, 'name' | 'port' | 'apiPort'>,
  { folder, etcdPort, programs, data }: MemberOptions & { readonly data: string },
): string {
  const at = (ofPort: number) => ({ listen: `127.0.0.1:${ofPort}`, connect_address: `127.0.0.1:${ofPort}` })
  return JSON.stringify({
    scope: 'baton',
    name,
    restapi: at(apiPort),
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: CLUSTER,
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, { auth: 'trust' }, 'data-checksums'],
    },
    postgresql: {
      ...at(port),
      data_dir: data,
      bin_dir: programs.postgres,
      pgpass: join(folder, `${name}.pgpass`),
      pg_hba: TRUSTED,
      authentication: { superuser: { username: 'postgres' }, replication: { username: 'replicator' } },
      parameters: { unix_socket_directories: '' },
      // Copies the new primary if the old one cannot be rewound.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
    },
  })
}
