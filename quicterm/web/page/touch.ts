// Fingers on a terminal: they pan and scroll it, also for full-screen programs, change the font with two, and select. A
// mouse causes none of these events.

import { handles, type Ends } from "./handles";
import type { Tab } from "./tab";
import type { Reader } from "./sizing";

/** slop is how many pixels a finger may move that only touches. */
const slop = 8;

/** longPress is after how many milliseconds a finger that does not move selects. */
const longPress = 500;

/** friction is which part of its speed a screen keeps each millisecond; it stands below the least, in pixels in one. */
const friction = 0.997;
const leastSpeed = 0.02;

/** The sizes of the font in pixels. */
const fonts = { min: 5, max: 32 };

type Point = { x: number; y: number };

/** touchable makes a terminal one for fingers. selected is called when something is selected, or nothing any more. */
export function touchable(tab: Tab, reader: Reader, selected: (text: string) => void) {
	const { terminal, element } = tab;
	let last: Point & { at: number } = { x: 0, y: 0, at: 0 };
	let speed: Point = { x: 0, y: 0 };
	let doing: "" | "touch" | "move" | "select" | "pinch" = "";
	let pressing = 0, frame = 0;
	let rest = 0; // pixels that were moved, and are less than a line
	let pinched = { apart: 0, font: 0 };
	let word: Ends = { from: 0, to: 0 }; // the word that was pressed, or the end of a selection whose other one is dragged
	let aside: Point = { x: 0, y: 0 }; // where the cell is that is dragged, from the finger
	const { grip } = handles(terminal);

	/** move moves what is seen by pixels: the part of the screen, then the scrollback or what the program shows. */
	const move = (x: number, y: number) => {
		const [, left] = reader.pan(x, y);
		const { height } = tab.cell();
		rest += left;
		const lines = Math.trunc(rest / height);
		rest -= lines * height;
		if (!lines) return;
		const programs = terminal.buffer.active.type === "alternate" || terminal.modes.mouseTrackingMode !== "none";
		if (!programs) {
			terminal.scrollLines(lines);
			return;
		}
		// xterm.js sends what the program wants for a wheel: a report, or an arrow.
		for (let n = 0; n < Math.abs(lines); n++) {
			terminal.element!.querySelector(".xterm-screen")!.dispatchEvent(new WheelEvent("wheel", {
				deltaY: Math.sign(lines), deltaMode: WheelEvent.DOM_DELTA_LINE,
				clientX: last.x, clientY: last.y, bubbles: true, cancelable: true,
			}));
		}
	};

	/** glide moves on after a finger has left, ever slower. */
	const glide = (before: number) => {
		frame = requestAnimationFrame((now) => {
			const passed = Math.min(now - before, 50);
			move(speed.x * passed, speed.y * passed);
			const kept = friction ** passed;
			speed = { x: speed.x * kept, y: speed.y * kept };
			if (Math.hypot(speed.x, speed.y) > leastSpeed) glide(now);
		});
	};

	const stop = () => {
		clearTimeout(pressing);
		cancelAnimationFrame(frame);
	};

	/** cellAt returns the cell at a point, counted from the beginning of the buffer. */
	const cellAt = ({ x, y }: Point) => {
		const box = terminal.element!.querySelector(".xterm-screen")!.getBoundingClientRect();
		const { width, height } = tab.cell();
		const column = Math.max(0, Math.min(terminal.cols - 1, Math.floor((x - box.left) / width)));
		const row = Math.max(0, Math.min(terminal.rows - 1, Math.floor((y - box.top) / height)));
		return (terminal.buffer.active.viewportY + row) * terminal.cols + column;
	};

	const select = (from: number, to: number) =>
		terminal.select(from % terminal.cols, Math.floor(from / terminal.cols), to - from);

	/** press selects the word under the finger. */
	const press = () => {
		doing = "select";
		const at = cellAt(last);
		const line = terminal.buffer.active.getLine(Math.floor(at / terminal.cols));
		const isWord = (column: number) => {
			const cell = line?.getCell(column);
			return cell !== undefined && (/\S/.test(cell.getChars()) || cell.getWidth() === 0);
		};
		let from = at % terminal.cols, to = from;
		if (isWord(from)) {
			while (from > 0 && isWord(from - 1)) from--;
			while (to < terminal.cols && isWord(to)) to++;
		} else to++;
		word = { from: at - (at % terminal.cols) + from, to: at - (at % terminal.cols) + to };
		select(word.from, word.to);
		navigator.vibrate?.(10);
	};

	const apart = (touches: TouchList) =>
		Math.hypot(touches[0].clientX - touches[1].clientX, touches[0].clientY - touches[1].clientY);

	const on = (name: "touchstart" | "touchmove" | "touchend" | "touchcancel", act: (event: TouchEvent) => void) =>
		element.addEventListener(name, act, { passive: false, signal: tab.closed });

	on("touchstart", (event) => {
		stop();
		if (event.touches.length === 2) {
			doing = "pinch";
			pinched = { apart: apart(event.touches), font: terminal.options.fontSize! };
			return;
		}
		if (event.touches.length > 1) return;
		const [{ clientX: x, clientY: y }] = event.touches;
		last = { x, y, at: event.timeStamp };
		speed = { x: 0, y: 0 };
		rest = 0;
		const dragged = grip(event.target);
		aside = dragged ? { x: dragged.x - x, y: dragged.y - y } : { x: 0, y: 0 };
		if (dragged) {
			doing = "select";
			word = { from: dragged.stays, to: dragged.stays };
			return;
		}
		doing = "touch";
		pressing = setTimeout(press, longPress);
	});
	on("touchmove", (event) => {
		event.preventDefault();
		if (doing === "pinch") {
			if (event.touches.length < 2) return;
			const font = Math.round(pinched.font * apart(event.touches) / pinched.apart);
			terminal.options.fontSize = Math.max(fonts.min, Math.min(fonts.max, font));
			return;
		}
		const [{ clientX: x, clientY: y }] = event.touches;
		const by = { x: last.x - x, y: last.y - y };
		if (doing === "touch") {
			if (Math.hypot(by.x, by.y) < slop) return;
			clearTimeout(pressing);
			doing = "move";
		}
		if (doing === "select") {
			last = { x, y, at: event.timeStamp };
			const at = cellAt({ x: x + aside.x, y: y + aside.y });
			select(Math.min(word.from, at), Math.max(word.to, at + 1));
		} else if (doing === "move") {
			const passed = Math.max(event.timeStamp - last.at, 1);
			speed = { x: (speed.x + by.x / passed) / 2, y: (speed.y + by.y / passed) / 2 };
			last = { x, y, at: event.timeStamp };
			move(by.x, by.y);
		}
	});
	on("touchend", (event) => {
		stop();
		if (doing === "select" || doing === "pinch") event.preventDefault(); // no click
		if (doing === "pinch") tab.fit();
		if (doing === "move" && event.timeStamp - last.at < 50) glide(performance.now());
		if (doing === "touch") terminal.clearSelection();
		doing = "";
	});
	on("touchcancel", () => {
		stop();
		doing = "";
	});
	element.addEventListener("contextmenu", (event) => {
		if (doing) event.preventDefault();
	}, { signal: tab.closed });
	terminal.onSelectionChange(() => selected(terminal.getSelection()));
}
