// Light and dark, as the system is. A program that asks for the colours (OSC 10, 11) gets those from xterm.js.

import type { Tab } from "./tab";

const light = matchMedia("(prefers-color-scheme: light)");

const themes = {
	dark: {},
	light: { background: "#fff", foreground: "#222", cursor: "#222", cursorAccent: "#fff", selectionBackground: "#b4d5fe" },
};

/** follow gives a tab the colours of the system, also when they change. On white, many of a program's colours need more contrast. */
export function follow(tab: Tab) {
	const apply = () => {
		tab.terminal.options.theme = light.matches ? themes.light : themes.dark;
		tab.terminal.options.minimumContrastRatio = light.matches ? 4.5 : 1;
	};
	apply();
	light.addEventListener("change", apply, { signal: tab.closed });
}
