// Which sessions were open when the page was left: their ids, by which nobody gets in. Each window has its own; the
// installed page, of which there is one, has them also after it was closed.

const key = "sessions";
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
