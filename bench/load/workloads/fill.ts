import { callBackBody } from '../descriptors.ts'
import { HttpConnection } from '../http-connection.ts'
import { callBackRequest } from '../requests.ts'

export interface FillInput {
  url: string
  partitions: number
}

const PER_CALL_BACK = 5_000

/** Not measured: puts partitions into the store. The next body is made while the last one is stored. */
export async function fill({ url, partitions }: FillInput): Promise<void> {
  const connection = await HttpConnection.open(url)
  try {
    let underWay: Promise<void> = Promise.resolve()
    for (let left = partitions; left > 0; left -= PER_CALL_BACK) {
      const request = callBackRequest(url, callBackBody(Math.min(PER_CALL_BACK, left)).body)
      await underWay
      underWay = connection.exchange(request).then(({ status, body }) => {
        if (status !== 200) throw new Error(`call-back answered ${status}: ${body.slice(0, 500)}`)
      })
    }
    await underWay
  } finally {
    connection.close()
  }
}
