// The tabs of the page, of which one is shown, and their bar.

import type { Client, Message } from "./client";
import { Tab } from "./tab";

export class Tabs {
	shown?: Tab;
	readonly #all = new Map<number, Tab>();
	#next = 1;

	/** opened is called with each tab before it has output, changed when one is shown or has changed. */
	constructor(
		readonly client: Client, readonly bar: HTMLElement, readonly place: HTMLElement,
		readonly opened: (tab: Tab) => void, readonly changed: (shown?: Tab) => void,
	) {}

	/** open shows a session by name or id, in its tab if it has one, or a new session. */
	open(session: string, name = session) {
		const known = session && this.#list().find((tab) => !tab.ended && [tab.session, tab.name].includes(session));
		if (known) {
			this.show(known);
			return;
		}
		for (const over of this.#list()) if (session && over.session === session) this.close(over);
		const tab = new Tab(this.client, this.#next++, name, this.place, () => this.#draw());
		this.#all.set(tab.id, tab);
		this.opened(tab);
		this.show(tab);
		tab.attach(session);
	}

	show(tab?: Tab) {
		if (this.shown !== tab) this.shown?.show(false);
		this.shown = tab;
		tab?.show(true);
		this.#draw();
	}

	close(tab: Tab) {
		this.#all.delete(tab.id);
		tab.close();
		if (this.shown === tab) {
			this.shown = undefined;
			this.show(this.#list().at(-1));
		} else this.#draw();
	}

	/** seen says that the person is back. */
	seen() {
		if (!this.shown?.rang) return;
		this.shown.rang = false;
		this.#draw();
	}

	/** sessions returns the ids of those that are open, the one that is shown last. */
	sessions(): string[] {
		const open = this.#list().filter((tab) => tab.session && !tab.ended);
		return [...open, ...open.filter((tab) => tab === this.shown)].map((tab) => tab.session);
	}

	#list(): Tab[] {
		return [...this.#all.values()];
	}

	receive(message: Message) {
		this.#all.get(message.tab!)?.receive(message);
	}

	#draw() {
		this.bar.replaceChildren(...this.#list().map((tab) => {
			const name = label(tab);
			const item = document.createElement("span");
			const open = document.createElement("button");
			open.textContent = name;
			open.ariaCurrent = String(tab === this.shown);
			open.onclick = () => this.show(tab);
			const close = document.createElement("button");
			close.textContent = "×";
			close.ariaLabel = `Leave ${name}`;
			close.onclick = () => this.close(tab);
			item.append(open, close);
			return item;
		}));
		this.changed(this.shown);
	}
}

/** label is what a tab is called, with a mark if its bell has rung. */
export function label(tab: Tab): string {
	return (tab.rang ? "🔔 " : "") + (tab.title || tab.name || "new session");
}
