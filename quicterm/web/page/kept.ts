// What is kept of the sessions that are open when the page is left: their ids, by which nobody gets in. Each window has
// its own; the installed page, of which there is one, has them also after it was closed. It also has the text of the screen
// that was shown last, for a start without a network.

const key = "sessions";
const screen = "screen";
const installed = matchMedia("(display-mode: standalone)").matches;

/** keep keeps the ids of the sessions that are open, the one that is shown last. */
export function keep(ids: string[]) {
	sessionStorage.setItem(key, ids.join(" "));
	if (installed) localStorage.setItem(key, ids.join(" "));
}

/** kept returns the ids that keep has kept last. */
export function kept(): string[] {
	const ids = sessionStorage.getItem(key) ?? (installed ? localStorage.getItem(key) : null);
	return ids?.match(/[0-9a-f]+/g) ?? [];
}

/** keepScreen keeps what the terminal shows, or nothing, in the installed page alone. */
export function keepScreen(text: string) {
	if (installed && text) localStorage.setItem(screen, text);
	else localStorage.removeItem(screen);
}

/** keptScreen returns what keepScreen has kept last. */
export const keptScreen = (): string => (installed ? localStorage.getItem(screen) : null) ?? "";
