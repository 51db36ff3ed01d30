import '../style/index.css'
import '../style/reference.css'
import { render } from 'preact'
import { ReferencePage } from './reference-page.tsx'

const root = document.getElementById('page')
if (root !== null) {
  root.replaceChildren()
  render(<ReferencePage />, root)
}
