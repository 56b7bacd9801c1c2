// xterm.js without a screen: what it shows and keeps after output and resizes.
import headless from '@xterm/headless'
import unicode11 from '@xterm/addon-unicode11'

export const name = 'xterm.js'

// run returns the dump of a terminal after steps: each is a Buffer of output or a size [cols, rows].
// If state is set, the dump also has what the terminal keeps but does not show.
export async function run ({ cols = 80, rows = 24, scrollback = 5000, steps, state }) {
  const term = new headless.Terminal({
    cols, rows, scrollback, allowProposedApi: true, logLevel: 'off', windowOptions: { pushTitle: true, popTitle: true }
  })
  term.loadAddon(new unicode11.Unicode11Addon())
  term.unicode.activeVersion = '11'
  let title = ''
  term.onTitleChange(t => { title = t })
  for (const step of steps) {
    if (Array.isArray(step)) term.resize(...step)
    else await new Promise(resolve => term.write(step, resolve))
  }
  const dump = dumpOf(term, title)
  if (state) dump.state = stateOf(term)
  term.dispose()
  return dump
}

// colour is '' for the default, pN of the palette, or #rrggbb.
const colour = (isDefault, isPalette, value) =>
  isDefault ? '' : isPalette ? 'p' + value : '#' + (value & 0xffffff).toString(16).padStart(6, '0')

// attributes are letters: bold, dim, italic, underlined, blinking, reversed, hidden, struck through.
const attributes = c => [[c.isBold(), 'B'], [c.isDim(), 'D'], [c.isItalic(), 'I'], [c.isUnderline(), 'U'],
  [c.isBlink(), 'K'], [c.isInverse(), 'R'], [c.isInvisible(), 'H'], [c.isStrikethrough(), 'S']]
  .map(([on, letter]) => on ? letter : '').join('')

const style = c => [
  colour(c.isFgDefault(), c.isFgPalette(), c.getFgColor()),
  colour(c.isBgDefault(), c.isBgPalette(), c.getBgColor()),
  attributes(c)
]

// rowOf is a row as runs of cells of one style: [text, foreground, background, attributes].
// A wide character fills two cells. Trailing blanks of the default style are cut.
export function rowOf (cells, wrap) {
  const runs = []
  for (const [text, ...style] of cells) {
    const last = runs.at(-1)
    if (last && style.every((s, i) => last[i + 1] === s)) last[0] += text
    else runs.push([text, ...style])
  }
  const last = runs.at(-1)
  if (last && !last[1] && !last[2] && !last[3]) {
    last[0] = last[0].replace(/ +$/, '')
    if (!last[0]) runs.pop()
  }
  return { runs, wrap }
}

function dumpOf (term, title) {
  const row = line => {
    const cells = []
    for (let x = 0; x < term.cols; x++) {
      const c = line.getCell(x)
      if (c.getWidth() > 0) cells.push([c.getChars() || ' ', ...style(c)])
    }
    return rowOf(cells, line.isWrapped)
  }
  const lines = (buffer, from, to) => Array.from({ length: to - from }, (_, y) => row(buffer.getLine(from + y)))
  const { active, normal } = term.buffer
  const dump = {
    cols: term.cols,
    rows: term.rows,
    cursor: [active.cursorX, active.cursorY],
    alternate: active.type === 'alternate',
    title,
    modes: term.modes,
    scrollback: lines(active, 0, active.baseY),
    screen: lines(active, active.baseY, active.baseY + term.rows)
  }
  if (dump.alternate) dump.main = lines(normal, normal.baseY, normal.baseY + term.rows)
  return dump
}

// stateOf reads the fields of xterm.js that its interface does not show.
function stateOf (term) {
  const core = term._core
  const input = core._inputHandler
  const pen = c => {
    return [...style(c), c.isProtected() ? 'P' : '', c.extended.underlineStyle, (c.extended.underlineColor & 0x3ffffff) % 0x3ffffff,
      c.extended.urlId > 0]
  }
  const charset = c => c === undefined ? null : Object.keys(c).length ? Object.values(c).join('') : ''
  const buffer = b => ({ // the saved row moves with what scrolls, which is not so elsewhere
    margins: [b.scrollTop, b.scrollBottom],
    saved: [b.savedX, pen(b.savedCurAttrData), charset(b.savedCharset)],
    tabs: Object.keys(b.tabs).filter(x => b.tabs[x]).map(Number).filter(x => x < term.cols)
  })
  return {
    pen: pen(input._curAttrData),
    normal: buffer(core._bufferService.buffers.normal),
    active: buffer(core._bufferService.buffer),
    charsets: [0, 1, 2, 3].map(g => charset(core._charsetService._charsets[g]) || ''),
    charset: charset(core._charsetService.charset) || '',
    shift: core._charsetService.glevel,
    private: core.coreService.decPrivateModes,
    cursorHidden: core.coreService.isCursorHidden,
    mouse: [core.coreMouseService.activeProtocol, core.coreMouseService.activeEncoding],
    convertEol: core.optionsService.rawOptions.convertEol,
    titles: input._windowTitleStack
  }
}
