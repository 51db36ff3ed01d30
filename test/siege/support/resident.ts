import { readFileSync } from 'node:fs'

/** Resident memory of a process in megabytes; NaN if the system does not report it. */
export function residentMb(pid: number): number {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Math.round(Number(kilobytes) / 1024)
  } catch {
    return Number.NaN
  }
}

/** Megabytes that a process has read so far, from connections and files; NaN if the system does not report it. */
export function receivedMb(pid: number): number {
  try {
    const [, bytes] = /^rchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? []
    return Number(bytes) / 1e6
  } catch {
    return Number.NaN
  }
}
