// The keys that a phone's keyboard does not have, in a bar below the terminal. They leave the focus where it is, so
// that the keyboard stays.

import type { Terminal } from "@xterm/xterm";

/** repeatAfter and repeatEach are for how many milliseconds a key is held before it repeats, and does so again. */
const repeatAfter = 400;
const repeatEach = 60;

/** A modifier is for one key, or until it is pressed again if it was pressed twice. */
type Held = "" | "once" | "locked";

/** The letters that end the sequence of an arrow. */
const arrows: Record<string, [label: string, final: string]> = {
	"←": ["Left", "D"], "↓": ["Down", "B"], "↑": ["Up", "A"], "→": ["Right", "C"],
};

export class KeyBar {
	readonly element = document.createElement("div");
	readonly #held = { Ctrl: "" as Held, Alt: "" as Held };
	readonly #modifiers = new Map<"Ctrl" | "Alt", HTMLButtonElement>();

	/** shown returns the terminal in which the keys are typed. */
	constructor(readonly shown: () => Terminal | undefined, paste: () => void) {
		this.element.className = "keys";
		this.element.role = "toolbar";
		this.element.ariaLabel = "Keys";
		this.key("Esc", "Escape", () => this.#type("\x1b"));
		this.key("Tab", "Tab", () => this.#type("\t"), true);
		this.#modifier("Ctrl", "Control");
		this.#modifier("Alt", "Alt");
		for (const [text, [name, final]] of Object.entries(arrows)) this.key(text, name, () => this.#arrow(final), true);
		for (const [text, name] of [["|", "Pipe"], ["/", "Slash"], ["~", "Tilde"]]) {
			this.key(text, name, () => this.#type(text), true);
		}
		this.key("^C", "Control-C", () => this.#type("\x03"));
		this.key("Paste", "Paste", paste);
	}

	/** key adds a key, which does something, and again while it is held if it repeats. */
	key(text: string, name: string, act: () => void, repeats = false): HTMLButtonElement {
		const button = document.createElement("button");
		button.type = "button";
		button.textContent = text;
		button.ariaLabel = name;
		let timer = 0;
		const again = () => {
			act();
			timer = setTimeout(again, repeatEach);
		};
		const release = () => clearTimeout(timer);
		if (repeats) {
			button.onpointerdown = () => {
				release();
				act();
				timer = setTimeout(again, repeatAfter);
			};
			button.onpointerup = button.onpointercancel = button.onpointerleave = release;
		}
		button.onclick = (event) => {
			if (!repeats || event.detail === 0) act(); // by a keyboard or a screen reader
		};
		button.onmousedown = (event) => event.preventDefault(); // it would take the focus
		button.oncontextmenu = (event) => event.preventDefault();
		this.element.append(button);
		return button;
	}

	/** modify returns what is typed with the modifiers that are held. What is no single key stays: a terminal's report. */
	modify(keys: string): string {
		if ([...keys].length !== 1) return keys;
		const { Ctrl, Alt } = this.#held;
		if (!Ctrl && !Alt) return keys;
		const key = (Alt ? "\x1b" : "") + (Ctrl ? control(keys) : keys);
		this.#release();
		return key;
	}

	#modifier(name: "Ctrl" | "Alt", label: string) {
		const next: Record<Held, Held> = { "": "once", once: "locked", locked: "" };
		this.#modifiers.set(name, this.key(name, label, () => {
			this.#held[name] = next[this.#held[name]];
			this.#draw();
		}));
		this.#draw();
	}

	#release() {
		for (const name of ["Ctrl", "Alt"] as const) if (this.#held[name] === "once") this.#held[name] = "";
		this.#draw();
	}

	#draw() {
		for (const [name, button] of this.#modifiers) {
			button.ariaPressed = String(this.#held[name] !== "");
			button.classList.toggle("locked", this.#held[name] === "locked");
		}
	}

	#type(keys: string) {
		this.shown()?.input(keys);
	}

	#arrow(final: string) {
		const modifiers = 1 + (this.#held.Alt ? 2 : 0) + (this.#held.Ctrl ? 4 : 0);
		if (modifiers > 1) {
			this.#release();
			this.#type(`\x1b[1;${modifiers}${final}`);
		} else this.#type((this.shown()?.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[") + final);
	}
}

/** control returns what a key sends with Ctrl, or the key if it is none that has a control character. */
export function control(key: string): string {
	if (key === " " || key === "2") return "\0";
	if (key === "/") return "\x1f";
	if (key === "?") return "\x7f";
	const code = key.toUpperCase().charCodeAt(0);
	return code >= 0x40 && code < 0x60 ? String.fromCharCode(code & 0x1f) : key;
}
