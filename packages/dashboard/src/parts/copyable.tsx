import { useState } from 'preact/hooks'
import { Scrolling } from './scrolling.tsx'

/** A command with a copy button. If the clipboard is not available, the text can still be selected. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), 2000)
    } catch {
      setCopied(false)
    }
  }
  return (
    <div class="copyable">
      <Scrolling label={label}>
        <pre>{text}</pre>
      </Scrolling>
      <button type="button" class="button small" onClick={() => void copy()}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}
