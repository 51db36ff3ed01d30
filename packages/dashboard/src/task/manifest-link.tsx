import { useState } from 'preact/hooks'
import { say } from '../parts/notices.tsx'
import { baseUrl, explained, token } from '../service/connection.ts'
import { readManifest } from './manifest.ts'

/** A link, which the browser can write to disk as it comes; but no link can carry a token. */
export function ManifestLink({ taskId }: { taskId: string }) {
  const [busy, setBusy] = useState(false)
  const url = new URL(`tasks/${encodeURIComponent(taskId)}/manifest`, baseUrl)
  const name = `${taskId.replaceAll(/[^\w.-]+/g, '_')}.ndjson`
  const bearer = token.value
  if (bearer === null) {
    return (
      <a href={url.href} download={name}>
        Download the manifest
      </a>
    )
  }
  const fetchIt = async () => {
    if (busy) return
    setBusy(true)
    try {
      hand(await readManifest(url, bearer), name)
    } catch (error) {
      say('failed', `The manifest could not be read. ${explained(error)}`)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button type="button" aria-disabled={busy} onClick={() => void fetchIt()}>
      Download the manifest
    </button>
  )
}

function hand(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
