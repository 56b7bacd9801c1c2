// The handles at the ends of a selection, which a thumb can drag.

import type { Terminal } from "@xterm/xterm";

/** size is the height and width in pixels of what a thumb finds. */
const size = 44;

/** The ends of a selection, in cells counted from the beginning of the buffer; to is behind the last one. */
export type Ends = { from: number; to: number };

/** handles gives a terminal handles at the ends of what is selected in it. */
export function handles(terminal: Terminal) {
	const screen = terminal.element!.querySelector<HTMLElement>(".xterm-screen")!;
	const both = ["above", "below"].map((name) => {
		const handle = document.createElement("i");
		handle.className = `handle ${name}`;
		handle.hidden = true;
		screen.append(handle);
		return handle;
	});

	const ends = (): Ends | undefined => {
		const at = terminal.getSelectionPosition();
		return at && { from: at.start.y * terminal.cols + at.start.x, to: at.end.y * terminal.cols + at.end.x };
	};

	/** place puts a handle above or below a cell, where there is room, centred on one of its sides. */
	const place = (handle: HTMLElement, at: number, below: boolean) => {
		const [width, height] = [screen.clientWidth / terminal.cols, screen.clientHeight / terminal.rows];
		const row = Math.floor(at / terminal.cols) - terminal.buffer.active.viewportY;
		const [over, under] = [row * height - size, (row + 1) * height];
		if (below ? under + size > screen.clientHeight : over < 0) below = !below;
		handle.hidden = row < 0 || row >= terminal.rows;
		handle.className = `handle ${below ? "below" : "above"}`;
		handle.style.top = `${below ? under : over}px`;
		const x = (at % terminal.cols + (handle === both[1] ? 1 : 0)) * width - size / 2;
		handle.style.left = `${Math.max(0, Math.min(screen.clientWidth - size, x))}px`;
	};
	const draw = () => {
		const at = ends();
		for (const handle of both) handle.hidden = !at;
		if (!at) return;
		place(both[0], at.from, false);
		place(both[1], at.to - 1, true);
	};
	terminal.onSelectionChange(draw);
	terminal.onRender(draw); // it has scrolled, or has another size

	/** grip returns the end of the selection that stays when a handle is dragged, and the middle of the cell at the other. */
	const grip = (handle: EventTarget | null) => {
		const at = ends(), which = both.indexOf(handle as HTMLElement);
		if (!at || which < 0) return undefined;
		const box = screen.getBoundingClientRect(), cell = which ? at.to - 1 : at.from;
		const row = Math.floor(cell / terminal.cols) - terminal.buffer.active.viewportY;
		return {
			stays: which ? at.from : at.to,
			x: box.x + (cell % terminal.cols + 0.5) * box.width / terminal.cols,
			y: box.y + (row + 0.5) * box.height / terminal.rows,
		};
	};
	return { grip };
}
