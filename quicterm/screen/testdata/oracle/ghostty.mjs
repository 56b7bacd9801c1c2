// Ghostty's core, as a second reference. It tells no title, no wrapped rows and no state,
// and its rows have RGB colours only: those of its palette count as palette colours.
import fs from 'fs'
import { createRequire } from 'module'
import { GhosttyCore } from '@wterm/ghostty'
import { rowOf } from './xterm.mjs'

export const name = 'Ghostty'

console.log = () => {} // the core logs there

const wasm = fs.readFileSync(createRequire(import.meta.url).resolve('@wterm/ghostty/ghostty-vt.wasm'))
const wasmPath = 'data:application/wasm;base64,' + wasm.toString('base64')

async function terminal (cols, rows) {
  const core = await GhosttyCore.load({ wasmPath, scrollbackLimit: 16 << 20 })
  core.init(cols, rows)
  return core
}

let names // of the palette's colours; equal colours share the lowest index
async function palette () {
  const core = await terminal(256, 1)
  let text = ''
  for (let i = 0; i < 256; i++) text += `\x1b[38;5;${i}mx`
  core.writeString(text)
  names = new Map()
  for (let i = 255; i >= 0; i--) names.set(core.getCell(0, i).fgRgb, 'p' + i)
  core.dispose()
}

const colour = rgb => rgb === undefined ? '' : names.get(rgb) ?? '#' + rgb.toString(16).padStart(6, '0')
const attributes = flags => [...'BDIUKRHS'].filter((_, i) => flags & (1 << i)).join('')

function row (cell, cols) {
  const cells = []
  for (let x = 0; x < cols; x++) {
    const c = cell(x)
    if (c.width === 0) continue
    cells.push([c.chars ?? String.fromCodePoint(c.char), colour(c.fgRgb), colour(c.bgRgb), attributes(c.flags)])
  }
  return rowOf(cells)
}

export async function run ({ cols = 80, rows = 24, steps }) {
  if (!names) await palette()
  const core = await terminal(cols, rows)
  for (const step of steps) {
    if (!Array.isArray(step)) core.writeRaw(step)
    else core.resize(...([cols, rows] = step))
  }
  const { row: y, col: x } = core.getCursor()
  const lines = (n, cell) => Array.from({ length: n }, (_, y) => row(x => cell(y, x), cols))
  const count = core.getScrollbackCount()
  const dump = {
    cols,
    rows,
    cursor: [x, y],
    alternate: core.usingAltScreen(),
    scrollback: lines(count, (y, x) => core.getScrollbackCell(count - 1 - y, x)),
    screen: lines(rows, (y, x) => core.getCell(y, x))
  }
  core.dispose()
  return dump
}
