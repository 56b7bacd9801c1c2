// What a page has on a device with a touch screen, and where it is.

import { ask } from "./ask";
import { composeLine } from "./compose";
import { guard } from "./imeguard";
import { KeyBar } from "./keybar";
import { read } from "./read";
import { Reader } from "./sizing";
import type { Tab } from "./tab";
import { touchable } from "./touch";

/** onPhone is whether a finger is what points. */
export const onPhone = matchMedia("(pointer: coarse)").matches;

export class Phone {
	readonly #bar: KeyBar;
	readonly #fit: HTMLButtonElement;

	/** shown returns the tab that is shown. */
	constructor(readonly shown: () => Tab | undefined) {
		const terminal = () => shown()?.terminal;
		const { form, toggle } = composeLine(terminal);
		const paste = () => navigator.clipboard.readText().then((text) => terminal()?.paste(text), () => {
			ask("The browser does not let the page paste. Use the line below: it can be pasted into.", { "Close": () => {} });
			if (form.hidden) toggle();
		});
		this.#bar = new KeyBar(terminal, paste);
		this.#fit = this.#bar.key("Fit", "Give the session the size of this screen", () => {
			const reader = shown()?.reader;
			reader?.fit(!reader.own);
		});
		this.#bar.key("Read", "Read as text", () => {
			const shows = terminal();
			if (shows) read(shows);
		});
		this.#bar.key("Line", "Type a line", toggle);
		const parts = document.createElement("footer");
		parts.append(form, this.#bar.element);
		document.body.append(parts);
		// The keyboard covers a part of the page in some browsers.
		const size = () => { document.body.style.height = `${visualViewport!.height}px`; };
		visualViewport?.addEventListener("resize", size);
	}

	/** equip makes a tab one for fingers. */
	equip(tab: Tab) {
		const { terminal, element, closed } = tab;
		tab.reader = new Reader(tab, () => this.draw(), (text) => ask(text, { "Close": () => {} }));
		tab.modify = (keys) => this.#bar.modify(keys);
		guard(terminal, element, closed);
		const copy = document.createElement("button");
		copy.className = "copy";
		copy.textContent = "Copy";
		copy.hidden = true;
		copy.onmousedown = (event) => event.preventDefault();
		copy.onclick = () => {
			navigator.clipboard.writeText(terminal.getSelection());
			terminal.clearSelection();
		};
		tab.element.after(copy);
		closed.addEventListener("abort", () => copy.remove());
		touchable(tab, tab.reader, (text) => { copy.hidden = !text; });
		this.draw();
	}

	/** draw shows whose size the session has. */
	draw() {
		this.#fit.ariaPressed = String(this.shown()?.reader?.own ?? false);
	}
}
