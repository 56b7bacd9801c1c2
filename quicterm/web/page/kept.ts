// What is kept of the sessions that are open when the page is left: their ids, by which nobody gets in. Each window has
// its own; the installed page, of which there is one, has them also after it was closed. It also has the text of the screen
// that was shown last, for a start without a network.

const key = "sessions";
const screen = "screen";
const installed = matchMedia("(display-mode: standalone)").matches;

/** stores are where things are kept, first that of this window. There is none in a browser that is told to keep nothing. */
function stores(): Storage[] {
	try {
		return installed ? [sessionStorage, localStorage] : [sessionStorage];
	} catch {
		return [];
	}
}

/** keep keeps the ids of the sessions that are open, the one that is shown last. */
export function keep(ids: string[]) {
	for (const store of stores()) store.setItem(key, ids.join(" "));
}

/** kept returns the ids that keep has kept last. */
export function kept(): string[] {
	const ids = stores().map((store) => store.getItem(key)).find((ids) => ids !== null);
	return ids?.match(/[0-9a-f]+/g) ?? [];
}

/** keepScreen keeps what the terminal shows, or nothing, in the installed page alone. */
export function keepScreen(text: string) {
	const local = stores()[1];
	if (text) local?.setItem(screen, text);
	else local?.removeItem(screen);
}

/** keptScreen returns what keepScreen has kept last. */
export const keptScreen = (): string => stores()[1]?.getItem(screen) ?? "";
