// The search in the scrollback of the terminal that is shown: Ctrl-Shift-F, or a button.

import { SearchAddon } from "@xterm/addon-search";
import type { Tab } from "./tab";

const searches = new WeakMap<Tab, SearchAddon>();

/** searchable makes a tab one that can be searched. */
export function searchable(tab: Tab) {
	const search = new SearchAddon();
	tab.terminal.loadAddon(search);
	searches.set(tab, search);
}

/** searchBy makes a form search in the tab that shown returns. */
export function searchBy(form: HTMLFormElement, open: HTMLElement, shown: () => Tab | undefined) {
	const input = form.querySelector("input")!;
	const find = (back: boolean) => {
		const tab = shown();
		if (!tab) return;
		const search = searches.get(tab)!;
		const found = back ? search.findPrevious(input.value) : search.findNext(input.value);
		input.ariaInvalid = String(input.value !== "" && !found);
	};
	const show = () => {
		form.hidden = false;
		input.select();
		input.focus();
	};
	const close = () => {
		form.hidden = true;
		shown()?.terminal.focus();
	};
	open.onclick = show;
	form.onsubmit = (event) => {
		event.preventDefault();
		const name = (event.submitter as HTMLButtonElement | null)?.name;
		if (name === "close") close();
		else find(name !== "next"); // what was printed last is found first
	};
	form.onkeydown = (event) => {
		if (event.key === "Escape") close();
	};
	addEventListener("keydown", (event) => {
		if (!event.ctrlKey || !event.shiftKey || event.code !== "KeyF") return;
		event.preventDefault();
		event.stopPropagation();
		show();
	}, true); // before the terminal
}
