import { partitionRowSchema, pulledPartitionSchema } from '@baton/protocol'
import type { Config, SettingName } from './config.ts'
import { isNetwork } from './http/admission/proxies.ts'
import { isLoopback, isWildcard } from './loopback.ts'
import { parseNetwork } from './webhooks/address-rule.ts'

/** What can be wrong with settings that are each right by themselves. */
interface Contradiction {
  readonly between: readonly SettingName[]
  found(config: Config): string | undefined
}

const takenFields = new Set([
  ...Object.keys(partitionRowSchema().properties),
  ...Object.keys(pulledPartitionSchema().properties),
])
takenFields.delete('computeTableName')

const rules: readonly Contradiction[] = [
  {
    between: ['host', 'tokensFile', 'allowAnonymous'],
    found: ({ host, tokensFile, allowAnonymous }) =>
      isLoopback(host) || tokensFile !== null || allowAnonymous
        ? undefined
        : `anyone who reaches ${host} could pull and settle: name a file of tokens with --tokens-file, ` +
          'or say --allow-anonymous if the network keeps strangers out',
  },
  {
    between: ['host', 'databaseUrl', 'peerUrl'],
    found: ({ host, databaseUrl, peerUrl }) =>
      databaseUrl !== null && peerUrl === null && isWildcard(host)
        ? `other nodes cannot reach this one at ${host}: name its own address with --peer-url, ` +
          'such as http://10.0.0.7:7070, or listen on one with --host'
        : undefined,
  },
  {
    between: ['tlsCert', 'tlsKey'],
    found: ({ tlsCert, tlsKey }) => {
      if ((tlsCert === null) === (tlsKey === null)) return undefined
      return `a certificate and its key go together: give ${tlsCert === null ? '--tls-cert' : '--tls-key'}, too`
    },
  },
  {
    between: ['tlsCert', 'peerUrl'],
    found: ({ tlsCert, peerUrl }) =>
      tlsCert !== null && peerUrl?.startsWith('http:')
        ? 'with --tls-cert this node speaks HTTPS only: --peer-url must begin with https://'
        : undefined,
  },
  {
    between: ['trustProxy'],
    found: ({ trustProxy }) => {
      const wrong = trustProxy.filter((network) => !isNetwork(network))
      return wrong.length === 0
        ? undefined
        : `--trust-proxy takes addresses and networks such as 10.0.0.5 or 10.0.0.0/8, not ${wrong.join(', ')}`
    },
  },
  {
    between: ['webhookNetworks'],
    found: ({ webhookNetworks }) => {
      const wrong = webhookNetworks.find((text) => parseNetwork(text) === undefined)
      return wrong === undefined
        ? undefined
        : `--webhook-networks has ${wrong}, which is neither an address nor a network like 10.20.0.0/16`
    },
  },
  {
    between: ['delivery', 'levelBarrier'],
    found: ({ delivery, levelBarrier }) =>
      delivery === 'at-most-once' && levelBarrier
        ? 'a level barrier waits until partitions are done, which --delivery at-most-once never learns: ' +
          'use one of --level-barrier and --delivery at-most-once'
        : undefined,
  },
  {
    between: ['backoffSeconds', 'backoffMaxSeconds'],
    found: ({ backoffSeconds, backoffMaxSeconds }) =>
      backoffMaxSeconds < backoffSeconds
        ? `--backoff-max-seconds (${backoffMaxSeconds}) is below --backoff-seconds ` +
          `(${backoffSeconds}): raise the one or lower the other`
        : undefined,
  },
  {
    between: ['bodyLimitMb', 'maxReceivedMb'],
    found: ({ bodyLimitMb, maxReceivedMb }) =>
      maxReceivedMb < bodyLimitMb
        ? `--max-received-mb (${maxReceivedMb}) is below --body-limit-mb (${bodyLimitMb}), ` +
          'so the largest call-back could never arrive: raise the one or lower the other'
        : undefined,
  },
  {
    between: ['tableField'],
    found: ({ tableField }) => {
      if (takenFields.has(tableField))
        return `--table-field cannot be ${tableField}: another field has that name`
      return tableField === '__proto__'
        ? '--table-field cannot be __proto__: JavaScript has a meaning of its own for that name'
        : undefined
    },
  },
]

/** `config` may lack settings; nothing is said about those, nor about what depends on them. */
export function contradictions(config: Partial<Config>): string[] {
  return rules
    .filter(({ between }) => between.every((name) => config[name] !== undefined))
    .flatMap(({ found }) => found(config as Config) ?? [])
}
