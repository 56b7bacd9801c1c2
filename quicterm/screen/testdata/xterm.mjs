// Runs cases in xterm.js and prints what it shows, as screen.Dump in JSON.
//   npm install @xterm/headless@6 @xterm/addon-unicode11
//   node xterm.mjs < CASES > DUMPS
// A case is a line: {"cols": 80, "rows": 24, "scrollback": 1000, "steps": [{"write": BASE64}, {"resize": [COLS, ROWS]}]}
import { createRequire } from 'module'
import fs from 'fs'
const require = createRequire(process.cwd() + '/')
const { Terminal } = require('@xterm/headless')
const { Unicode11Addon } = require('@xterm/addon-unicode11')

const letters = c => [[c.isBold(), 'B'], [c.isDim(), 'D'], [c.isItalic(), 'I'], [c.isUnderline(), 'U'], [c.isBlink(), 'K'],
  [c.isInverse(), 'R'], [c.isInvisible(), 'H'], [c.isStrikethrough(), 'S']].filter(a => a[0]).map(a => a[1]).join('')
const color = (isDefault, isPalette, v) =>
  isDefault ? '' : isPalette ? 'p' + v : '#' + (v & 0xffffff).toString(16).padStart(6, '0')
const style = c => [color(c.isFgDefault(), c.isFgPalette(), c.getFgColor()), color(c.isBgDefault(), c.isBgPalette(), c.getBgColor()), letters(c)]

function row (line, cols) {
  const runs = []
  for (let x = 0; x < cols; x++) {
    const c = line.getCell(x)
    if (c.getWidth() === 0) continue
    const run = [c.getChars() || ' ', ...style(c)]
    const last = runs[runs.length - 1]
    if (last && last.slice(1).join() === run.slice(1).join()) last[0] += run[0]
    else runs.push(run)
  }
  const last = runs[runs.length - 1]
  if (last && last.slice(1).join('') === '') {
    last[0] = last[0].replace(/ +$/, '')
    if (!last[0]) runs.pop()
  }
  return { runs, wrap: line.isWrapped }
}

function run ({ cols, rows, scrollback, steps }) {
  const term = new Terminal({ cols, rows, scrollback, allowProposedApi: true, logLevel: 'off' })
  term.loadAddon(new Unicode11Addon())
  term.unicode.activeVersion = '11'
  let title = ''
  term.onTitleChange(t => { title = t })
  for (const s of steps) {
    if (s.resize) term.resize(...s.resize)
    else term._core.writeSync(Buffer.from(s.write || '', 'base64'))
  }
  const b = term.buffer.active
  const lines = (b, from, to) => Array.from({ length: to - from }, (_, i) => row(b.getLine(from + i), term.cols))
  const dump = {
    cols: term.cols, rows: term.rows, cursor: [b.cursorX, b.cursorY], alternate: b.type === 'alternate', title, modes: term.modes,
    scrollback: lines(b, 0, b.baseY), screen: lines(b, b.baseY, b.baseY + term.rows)
  }
  const n = term.buffer.normal
  if (dump.alternate) dump.main = lines(n, n.baseY, n.baseY + term.rows)
  term.dispose()
  return dump
}

// xterm.js fails on some output: then the answer is null.
for (const line of fs.readFileSync(0, 'utf8').split('\n').filter(l => l)) {
  let dump = null
  try { dump = run(JSON.parse(line)) } catch {}
  fs.writeSync(1, JSON.stringify(dump) + '\n')
}
process.exit(0)
