// The list of sessions, in a dialog: what runs in each, and what that waits for.

import type { Client, Message, Session } from "./client";

/** interval is the time in ms after which the list is asked for again while it is shown. */
const interval = 5000;

export class List {
	#timer = 0;
	readonly #body: HTMLElement;
	readonly #note: HTMLElement;

	/** open is called with the session that is chosen, "" for a new one. */
	constructor(readonly client: Client, readonly dialog: HTMLDialogElement, readonly open: (session: string, name: string) => void) {
		this.#body = dialog.querySelector("ul")!;
		this.#note = dialog.querySelector("p")!;
		dialog.addEventListener("close", () => clearTimeout(this.#timer));
		dialog.querySelector<HTMLButtonElement>("button[value=new]")!.onclick = () => this.#choose("", "");
	}

	show() {
		if (!this.dialog.open) this.dialog.showModal();
		this.ask();
	}

	close() {
		this.dialog.close();
	}

	/** ask asks for the sessions, if they are shown. */
	ask() {
		clearTimeout(this.#timer);
		if (this.dialog.open && document.visibilityState === "visible") this.client.send({ list: true });
	}

	receive({ sessions, unlisted }: Message) {
		if (unlisted) this.#note.textContent = unlisted.text;
		if (sessions) this.#draw(sessions);
		clearTimeout(this.#timer);
		if (this.dialog.open) this.#timer = setTimeout(() => this.ask(), interval);
	}

	#choose(session: string, name: string) {
		this.close();
		this.open(session, name);
	}

	#draw(sessions: Session[]) {
		const terminals = sessions.filter((session) => session.pty);
		this.#note.textContent = terminals.length ? "" : "There is no session with a terminal.";
		this.#body.replaceChildren(...terminals.map((session) => {
			const item = document.createElement("li");
			const button = document.createElement("button");
			const name = document.createElement("b");
			name.textContent = session.name;
			button.append(name, " " + describe(session));
			button.onclick = () => this.#choose(session.id, session.name);
			item.append(button);
			return item;
		}));
	}
}

/** describe says what a session does. */
export function describe(session: Session): string {
	const state = session.state === "exited" ? `ended with status ${session.status}` : session.state;
	const words = [`${state} since ${time(session.since)}`];
	if (session.runs) {
		const waits = session.waits === "prompt" ? ", at its prompt" : session.waits === "input" ? ", waits for input" : "";
		words.unshift(session.runs + waits);
	}
	if (session.clients.length) words.push(session.clients.join(", "));
	return words.join(" · ");
}

/** time says when something was: the time of today, and the date of another day. */
export function time(milliseconds: number): string {
	const then = new Date(milliseconds);
	return then.toDateString() === new Date().toDateString()
		? then.toLocaleTimeString([], { timeStyle: "short" })
		: then.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
