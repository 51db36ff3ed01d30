import { MemoryDisk } from '../../src/disk/memory/memory-disk.ts'
import { MemoryMedium } from '../../src/disk/memory/memory-medium.ts'
import { describeDisk } from './conformance/index.ts'

describeDisk({
  name: 'in-memory',
  async create() {
    const medium = new MemoryMedium()
    let disk = new MemoryDisk(medium)
    return {
      get disk() {
        return disk
      },
      async crash() {
        disk = new MemoryDisk(medium)
      },
      async dispose() {
        await disk.close()
      },
    }
  },
})
