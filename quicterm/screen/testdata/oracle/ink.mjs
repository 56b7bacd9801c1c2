// A form with boxes, a list and a spinner, drawn by Ink: npm install ink react; node ink.mjs
import React, { useEffect, useState } from 'react'
import { render, Box, Text, Static, useApp, useInput } from 'ink'

const e = React.createElement
const files = ['main.go', '漢字.txt', 'README.md', 'emoji 🎉', 'Makefile']

function App () {
  const { exit } = useApp()
  const [at, setAt] = useState(0)
  const [text, setText] = useState('')
  const [tick, setTick] = useState(0)
  const [log, setLog] = useState([])
  useEffect(() => {
    const timer = setInterval(() => setTick(t => t + 1), 250)
    return () => clearInterval(timer)
  }, [])
  useEffect(() => { if (tick % 2 === 0) setLog(l => [...l, `step ${tick}: read ${files[tick % files.length]}`]) }, [tick])
  useInput((input, key) => {
    if (input === 'q') exit()
    else if (key.downArrow) setAt(a => (a + 1) % files.length)
    else setText(t => t + input)
  })
  return e(React.Fragment, null,
    e(Static, { items: log }, line => e(Text, { key: line, dimColor: true }, line)),
    e(Box, { borderStyle: 'round', borderColor: 'cyan', flexDirection: 'column', paddingX: 1 },
      e(Text, { bold: true }, '⠋⠙⠹⠸⠼⠴⠦⠧'[tick % 8], ' Working… ', e(Text, { color: '#ff8800' }, `${tick * 7 % 100}%`)),
      e(Box, { gap: 2 },
        e(Box, { borderStyle: 'single', flexDirection: 'column', width: 24 },
          ...files.map((f, i) => e(Text, { key: f, inverse: i === at, color: 'green' }, f))),
        e(Box, { borderStyle: 'double', borderDimColor: true, flexGrow: 1 },
          e(Text, { wrap: 'wrap' }, 'A long text that the box wraps, with 漢字 and émojis 👍 in it, so that widths matter. '.repeat(1))))),
    e(Box, { borderStyle: 'round', width: 60 }, e(Text, null, '> ', text, e(Text, { inverse: true }, ' '))))
}
render(e(App))
