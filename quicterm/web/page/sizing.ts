// The size of a terminal on a small screen: that of the session, which may be a desktop's. The terminal is panned then.
// "Fit" gives the session the size of this screen, until the page is left or not seen any more.

import type { Sizing } from "./client";
import type { Tab } from "./tab";

/** settleTime is for how many milliseconds the screen must keep its size: a rotation is one change for the program. */
const settleTime = 250;

export class Reader {
	/** The session has the size of this screen. */
	own = false;
	#wanted = [0, 0];
	#timer = 0;
	#panned = false;

	/** changed is called when own has changed, told with what a person should know. */
	constructor(readonly tab: Tab, readonly changed: () => void, readonly told: (text: string) => void) {
		tab.element.classList.add("reader");
		document.addEventListener("visibilitychange", () => this.#settle(), { signal: tab.closed });
		tab.closed.addEventListener("abort", () => clearTimeout(this.#timer));
		tab.terminal.onCursorMove(() => this.#follow());
		tab.terminal.onData(() => { this.#panned = false; });
	}

	/** fit gives the session the size of the screen, or gives it back. */
	fit(take: boolean) {
		if (take) {
			this.#want(this.#size());
			this.tab.send({ take: true });
		} else {
			this.own = false;
			this.#want([0, 0]);
			this.changed();
		}
	}

	/** resized is called when the place of the terminal has another size. */
	resized() {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => this.#settle(), settleTime);
	}

	/** sized takes the size of the session from here in the output on. */
	sized({ size: [cols, rows], own, client }: Sizing) {
		const { terminal } = this.tab;
		terminal.write("", () => {
			terminal.resize(cols, rows);
			this.#follow();
		});
		if (own !== this.own) {
			if (this.own) this.told(`${client || "Another client"} has the size now`);
			this.own = own;
			this.changed();
		}
		this.#settle();
	}

	/** pan moves the part of the screen that is seen, and returns how much of it did not move. */
	pan(x: number, y: number): [x: number, y: number] {
		const { element } = this.tab;
		const { scrollLeft, scrollTop } = element;
		element.scrollBy(x, y);
		this.#panned = true;
		return [x - (element.scrollLeft - scrollLeft), y - (element.scrollTop - scrollTop)];
	}

	/** settle tells which size the session is to have, or none if it is not for this screen to say. */
	#settle() {
		if (!this.own || document.hidden) this.#want([0, 0]);
		else if (this.tab.element.offsetParent) this.#want(this.#size());
		this.#follow();
	}

	#want(size: number[]) {
		if (String(size) === String(this.#wanted)) return;
		this.#wanted = size;
		this.tab.send({ size });
	}

	#size(): number[] {
		const proposed = this.tab.proposed();
		return proposed ? [proposed.cols, proposed.rows] : [0, 0];
	}

	/** follow shows the cursor, if the person has not moved what is seen since a key was typed. */
	#follow() {
		const { element, terminal } = this.tab;
		if (this.#panned) return;
		const { width, height } = this.tab.cell();
		const { cursorX, cursorY } = terminal.buffer.active;
		const show = (at: number, cell: number, seen: number, extent: number) =>
			at < seen ? at : at + cell > seen + extent ? at + cell - extent : seen;
		element.scrollLeft = show(cursorX * width, width, element.scrollLeft, element.clientWidth);
		element.scrollTop = show(cursorY * height, height, element.scrollTop, element.clientHeight);
	}
}
