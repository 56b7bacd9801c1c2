// Programs that copy (OSC 52). They ask first, and read nothing: what was copied elsewhere is none of their business.

import { ask, asks } from "./ask";
import type { Tab } from "./tab";

/** maxCopied bounds what a program may copy, in characters of base64. */
const maxCopied = 1 << 20;

/** maxShown bounds what the question shows of that, in characters. */
const maxShown = 60;

export function askToCopy(tab: Tab) {
	tab.terminal.parser.registerOscHandler(52, (data) => {
		const text = decode(data.slice(data.indexOf(";") + 1));
		if (!text || asks()) return true; // or another text would be copied than the one that was read
		const shown = text.length > maxShown ? text.slice(0, maxShown) + "…" : text;
		ask(`${tab.name} wants to copy ${text.length} characters: ${shown}`, {
			"Copy": () => {
				navigator.clipboard.writeText(text).catch(() => ask("The browser does not let this page copy.", { "Close": () => {} }));
			},
			"Do not copy": () => {},
		});
		return true;
	});
}

/** decode returns the text in base64, or nothing if it is none. */
function decode(base64: string): string {
	if (base64.length > maxCopied) return "";
	try {
		return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
	} catch {
		return "";
	}
}
