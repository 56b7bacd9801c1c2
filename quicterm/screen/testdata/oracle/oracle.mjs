// What a terminal of others shows after output: the reference of the tests. README.md has the details.
//   node oracle.mjs [--ghostty] FILE [cols rows]   prints the dump of a recording
//   node oracle.mjs [--ghostty] --answers DIR…      writes NAME.json beside each NAME.raw
//   node oracle.mjs [--ghostty] --screens DIR…      the same, with the dumps of all screens of vttest
//   node oracle.mjs [--ghostty] --serve             answers a line of JSON by a line, for the tests
import fs from 'fs'
import path from 'path'
import readline from 'readline'

const args = process.argv.slice(2)
const flag = name => args[0] === name && args.shift()
const terminal = await import(flag('--ghostty') ? './ghostty.mjs' : './xterm.mjs')
const dump = async (file, cols = 80, rows = 24) =>
  JSON.stringify(await terminal.run({ cols: +cols, rows: +rows, steps: [fs.readFileSync(file)] })) + '\n'

// screens are the dumps at the ends of the screens of a recording of vttest, each with its position.
async function screens (file) {
  const data = fs.readFileSync(file)
  const dumps = []
  for (let at = 0; at < data.length;) {
    const end = data.indexOf('<RETURN>', at)
    at = end < 0 ? data.length : end + '<RETURN>'.length
    dumps.push(JSON.stringify({ at, ...await terminal.run({ steps: [data.subarray(0, at)] }) }))
  }
  return '[' + dumps.join(',\n') + ']\n'
}

if (flag('--serve')) {
  // On some output xterm.js fails, in a timer: the answer is null then.
  let fail
  process.on('uncaughtException', () => fail(null))
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line)
    request.steps = request.steps.map(s => typeof s === 'string' ? Buffer.from(s, 'base64') : s)
    const failed = new Promise(resolve => { fail = resolve })
    const dump = await Promise.race([terminal.run(request).catch(() => null), failed])
    process.stdout.write(JSON.stringify(dump) + '\n')
  }
} else if (args[0] === '--answers' || args[0] === '--screens') {
  const answer = args.shift() === '--screens' ? screens : dump
  for (const dir of args) {
    for (const file of fs.readdirSync(dir).filter(f => f.endsWith('.raw'))) {
      fs.writeFileSync(path.join(dir, file.replace(/raw$/, 'json')), await answer(path.join(dir, file)))
    }
  }
} else {
  process.stdout.write(await dump(...args))
}
