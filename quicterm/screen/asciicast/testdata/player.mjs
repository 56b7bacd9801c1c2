// Prints what the parser of asciinema's player makes of recordings, as JSON.
//   npm install asciinema-player
//   node player.mjs node_modules/asciinema-player FILE.cast…
// The parser is not exported by the package: this loads a copy that exports it.
import fs from 'fs'
import os from 'os'
import path from 'path'
import { pathToFileURL } from 'url'

const [player, ...files] = process.argv.slice(2)
const dist = path.join(player, 'dist')
const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'player-'))
try {
  fs.writeFileSync(path.join(copy, 'package.json'), '{"type":"module"}')
  let core
  for (const name of fs.readdirSync(dist).filter(name => name.endsWith('.js'))) {
    let code = fs.readFileSync(path.join(dist, name), 'utf8')
    const parsers = /const PARSERS = new Map\(/.exec(code)
    if (parsers) {
      code += '\nexport { PARSERS }\n'
      core = path.join(copy, name)
    }
    fs.writeFileSync(path.join(copy, name), code)
  }
  const { PARSERS } = await import(pathToFileURL(core))
  const parse = PARSERS.get('asciicast')
  const out = { player: JSON.parse(fs.readFileSync(path.join(player, 'package.json'))).version, files: {} }
  for (const file of files) {
    const { cols, rows, events } = await parse(new Response(fs.readFileSync(file, 'utf8')))
    const ms = t => Math.round(t * 1000) / 1000
    out.files[path.basename(file)] = { cols, rows, events: Array.from(events).map(([t, code, data]) => [ms(t), code, data]) }
  }
  console.log(JSON.stringify(out, null, 1))
} finally {
  fs.rmSync(copy, { recursive: true })
}
