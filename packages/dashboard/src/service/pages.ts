const PER_PAGE = 500
const MOST_READ = 2000

interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}

export interface Pages<Item> {
  readonly items: readonly Item[]
  readonly hasMore: boolean
}

/** Reads a list page by page, up to a bound. */
export async function readPages<Item>(
  read: (from: { limit: number; cursor?: string }) => Promise<Page<Item>>,
): Promise<Pages<Item>> {
  const items: Item[] = []
  let cursor: string | null = null
  do {
    const page: Page<Item> = await read({ limit: PER_PAGE, ...(cursor === null ? {} : { cursor }) })
    items.push(...page.items)
    cursor = page.next
  } while (cursor !== null && items.length < MOST_READ)
  return { items, hasMore: cursor !== null }
}
