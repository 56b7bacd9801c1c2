// Where xterm.js and Ghostty differ on recordings: node compare.mjs FILE.raw…
import fs from 'fs'
import path from 'path'
import * as xterm from './xterm.mjs'
import * as ghostty from './ghostty.mjs'

const runs = rows => rows.map(row => row.runs)
for (const file of process.argv.slice(2)) {
  const steps = [fs.readFileSync(file)]
  const x = await xterm.run({ steps })
  const g = await ghostty.run({ steps })
  const differ = []
  const note = (what, a, b) => {
    if (JSON.stringify(a) !== JSON.stringify(b)) differ.push(`${what}: ${JSON.stringify(a)} | ${JSON.stringify(b)}`)
  }
  note('cursor', x.cursor, g.cursor)
  note('alternate', x.alternate, g.alternate)
  for (const part of ['scrollback', 'screen']) {
    const [a, b] = [runs(x[part]), runs(g[part])]
    const y = a.findIndex((row, i) => JSON.stringify(row) !== JSON.stringify(b[i]))
    if (y >= 0 || a.length !== b.length) note(`${part} ${y}`, a[y] ?? a.length, b[y] ?? b.length)
  }
  if (differ.length) console.error(`${path.basename(file, '.raw')}\n  ${differ.map(d => d.slice(0, 200)).join('\n  ')}`)
}
