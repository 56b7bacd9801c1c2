// What tests run in each page before its own scripts: xterm.js has its terminals in no place where a test finds them, so
// that the field that each of them sets is watched. The page itself has nothing for tests.
() => {
	const terminals = [];
	Object.defineProperty(Object.prototype, "_core", {
		configurable: true,
		set(value) {
			if ("buffer" in this && "write" in this) terminals.push(this);
			Object.defineProperty(this, "_core", { value, writable: true, configurable: true, enumerable: true });
		},
	});
	const colour = (usual, palette, value) =>
		usual ? "" : palette ? "p" + value : "#" + (value & 0xffffff).toString(16).padStart(6, "0");
	const style = (c) => [
		colour(c.isFgDefault(), c.isFgPalette(), c.getFgColor()),
		colour(c.isBgDefault(), c.isBgPalette(), c.getBgColor()),
		[[c.isBold(), "B"], [c.isDim(), "D"], [c.isItalic(), "I"], [c.isUnderline(), "U"], [c.isBlink(), "K"],
			[c.isInverse(), "R"], [c.isInvisible(), "H"], [c.isStrikethrough(), "S"]].map(([on, letter]) => on ? letter : "").join(""),
	];
	// A row as qt peek --json has it: text, colours and attributes, without blanks at its end.
	const row = (line, cols) => {
		const runs = [];
		for (let x = 0; x < cols; x++) {
			const c = line.getCell(x);
			if (c.getWidth() === 0) continue;
			const [text, is] = [c.getChars() || " ", style(c)];
			const last = runs.at(-1);
			if (last && is.every((s, i) => last[i + 1] === s)) last[0] += text;
			else runs.push([text, ...is]);
		}
		const last = runs.at(-1);
		if (last && !last[1] && !last[2] && !last[3]) {
			last[0] = last[0].replace(/ +$/, "");
			if (!last[0]) runs.pop();
		}
		return { runs, wrap: line.isWrapped };
	};
	// When the client runs and output comes for the first time in a visit, and how long after a key the next output comes.
	const marks = {}, echoes = [];
	const mark = (name) => { marks[name] ??= performance.now(); };
	let pressed = 0;
	addEventListener("keydown", () => { pressed = performance.now(); }, true);
	const { Worker } = window;
	window.Worker = class extends Worker {
		constructor(...args) {
			super(...args);
			this.addEventListener("message", ({ data }) => {
				if (data.ready !== undefined) mark("ready");
				if (!data.output) return;
				mark("output");
				if (pressed) echoes.push(performance.now() - pressed);
				pressed = 0;
			});
		}
	};
	window.tested = {
		terminals, marks, echoes,
		shown: () => terminals.find((t) => t.element?.offsetParent),
		// The screen of the terminal that is shown, and the last rows of its scrollback.
		cells(scrollback) {
			const t = tested.shown();
			if (!t) return null;
			const { active } = t.buffer;
			const rows = (from, to) => Array.from({ length: to - from }, (_, y) => row(active.getLine(from + y), t.cols));
			return {
				cols: t.cols, rows: t.rows, cursor: [active.cursorX, active.cursorY], alternate: active.type === "alternate",
				screen: rows(active.baseY, active.baseY + t.rows),
				scrollback: rows(Math.max(0, active.baseY - scrollback), active.baseY),
			};
		},
		text() {
			const t = tested.shown();
			if (!t) return "";
			const { active } = t.buffer;
			return Array.from({ length: t.rows }, (_, y) => active.getLine(active.baseY + y).translateToString(true).trimEnd()).join("\n");
		},
	};
}
