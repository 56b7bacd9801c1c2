// A tab: the terminal of one session.

import { FitAddon } from "@xterm/addon-fit";
import { WebglAddon } from "@xterm/addon-webgl";
import { Terminal } from "@xterm/xterm";
import type { Client, Link, Message } from "./client";
import type { Reader } from "./sizing";

/** bellTime is for how many milliseconds a bell vibrates. */
const bellTime = 100;

export class Tab {
	readonly terminal = new Terminal({ scrollback: 10000, macOptionIsMeta: true, screenReaderMode: true });
	readonly element = document.createElement("section");

	/** The id of the session, once it is attached; before, what attach was called with. */
	session = "";
	title = "";
	link: Link = { state: "connecting", since: Date.now() };
	/** Why the session is over here. */
	ended?: { text: string; status?: number };
	/** The bell has rung since the terminal was seen. */
	rang = false;
	/** With one, the terminal has the session's size, whatever its place has. */
	reader?: Reader;
	/** wants is called with what the session wants from the person. */
	wants = (_text: string) => {};
	/** listens is called with the ports at which programs of the session listen, if the person may forward them. */
	listens = (_ports: number[]) => {};
	/** modify changes what is typed. */
	modify = (keys: string) => keys;
	readonly #closing = new AbortController();
	/** Ends when the tab is closed. */
	readonly closed = this.#closing.signal;

	readonly #fit = new FitAddon();
	#webgl?: WebglAddon;

	/** changed is called when anything of the above has changed. */
	constructor(
		readonly client: Client, readonly id: number, public name: string, parent: HTMLElement, readonly changed: (tab: Tab) => void,
	) {
		const terminal = this.terminal;
		parent.append(this.element);
		terminal.loadAddon(this.#fit);
		terminal.open(this.element);
		terminal.onData((keys) => this.send({ keys: this.modify(keys) }));
		terminal.onResize(({ cols, rows }) => {
			if (!this.reader) this.send({ size: [cols, rows] });
		});
		terminal.onTitleChange((title) => {
			this.title = title;
			changed(this);
		});
		terminal.onBell(() => {
			navigator.vibrate?.(bellTime);
			this.rang = document.hidden || this.element.hidden === true;
			this.wants("rings");
			changed(this);
		});
		const sizes = new ResizeObserver(() => this.fit());
		sizes.observe(this.element);
		this.closed.addEventListener("abort", () => sizes.disconnect());
	}

	/** attach attaches to the session with a name or id, or to a new one. */
	attach(session: string) {
		this.session = session;
		if (!this.reader) this.fit();
		const { cols, rows } = this.proposed() ?? this.terminal;
		this.send({ attach: { session, size: [cols, rows], follows: this.reader !== undefined } });
	}

	receive(message: Message) {
		const { output, attached, sizing, link, waits, ports, copying, copied, ended } = message;
		if (output) {
			this.terminal.write(output, () => this.send({ shown: output.length }));
			return;
		}
		if (copied?.path) this.terminal.paste(copied.path);
		if (copying !== undefined || copied) return;
		if (sizing) this.reader?.sized(sizing);
		if (attached) [this.session, this.name] = [attached.id, attached.name];
		if (link) this.link = link;
		if (waits) this.wants("waits for input");
		if (ports) this.listens(ports);
		if (ended) {
			this.ended = ended;
			this.terminal.options.disableStdin = true;
			if (ended.status !== undefined) this.wants(ended.status ? `has ended with status ${ended.status}` : "has ended");
		}
		this.changed(this);
	}

	/** send says something about the session to the client. */
	send(message: object) {
		this.client.send({ tab: this.id, ...message });
	}

	/** fit gives the terminal the size of its place, if that is shown. */
	fit() {
		if (this.reader) this.reader.resized();
		else if (this.element.offsetParent) this.#fit.fit();
	}

	/** proposed returns the columns and rows for which there is room. */
	proposed() {
		return this.#fit.proposeDimensions();
	}

	/** cell returns the size of a cell in pixels. */
	cell() {
		const screen = this.terminal.element!.querySelector(".xterm-screen")!;
		return { width: screen.clientWidth / this.terminal.cols, height: screen.clientHeight / this.terminal.rows };
	}

	/** show shows the terminal or hides it. A browser draws few by WebGL at a time. */
	show(shown: boolean) {
		this.element.hidden = !shown;
		this.#webgl?.dispose();
		this.#webgl = undefined;
		if (!shown) return;
		this.rang = false;
		this.fit();
		this.terminal.focus();
		try {
			this.#webgl = new WebglAddon();
			this.#webgl.onContextLoss(() => this.#webgl?.dispose()); // the slower renderer takes over
			this.terminal.loadAddon(this.#webgl);
		} catch {
			this.#webgl = undefined; // this browser has none
		}
	}

	/** text returns what the terminal shows. */
	text(): string {
		const { active } = this.terminal.buffer;
		const rows = Array.from({ length: this.terminal.rows }, (_, y) => active.getLine(active.viewportY + y));
		return rows.map((row) => row?.translateToString(true) ?? "").join("\n").trimEnd();
	}

	/** close leaves the session, which continues. */
	close() {
		this.send({ leave: true });
		this.#closing.abort();
		this.terminal.dispose();
		this.element.remove();
	}
}
