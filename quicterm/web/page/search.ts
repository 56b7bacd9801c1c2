// The search in the scrollback of the terminal that is shown.

import { SearchAddon } from "@xterm/addon-search";
import type { Tab } from "./tab";

const searches = new WeakMap<Tab, SearchAddon>();

/** searchable makes a tab one that can be searched. */
export function searchable(tab: Tab) {
	const search = new SearchAddon();
	tab.terminal.loadAddon(search);
	searches.set(tab, search);
}

/** searchBy makes a form search in the tab that shown returns. It returns what shows the form. */
export function searchBy(form: HTMLFormElement, shown: () => Tab | undefined): () => void {
	const input = form.querySelector("input")!;
	const find = (back: boolean) => {
		const tab = shown();
		if (!tab) return;
		const search = searches.get(tab)!;
		const found = back ? search.findPrevious(input.value) : search.findNext(input.value);
		input.ariaInvalid = String(input.value !== "" && !found);
	};
	const close = () => {
		form.hidden = true;
		shown()?.terminal.focus();
	};
	form.onsubmit = (event) => {
		event.preventDefault();
		const name = (event.submitter as HTMLButtonElement | null)?.name;
		if (name === "close") close();
		else find(name !== "next"); // what was printed last is found first
	};
	form.onkeydown = (event) => {
		if (event.key === "Escape") close();
	};
	return () => {
		form.hidden = false;
		input.select();
		input.focus();
	};
}
