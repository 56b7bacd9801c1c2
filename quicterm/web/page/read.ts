// What a terminal shows and has in its scrollback as text, in lines as long as the screen: to read wide ones.

import type { Terminal } from "@xterm/xterm";

/** text returns the lines of the primary screen and its scrollback as they were printed, not as they are wrapped. */
export function text(terminal: Terminal): string {
	const buffer = terminal.buffer.normal;
	const lines: string[] = [];
	for (let y = 0; y < buffer.length; y++) {
		const row = buffer.getLine(y)!;
		const continues = buffer.getLine(y + 1)?.isWrapped ?? false;
		const words = row.translateToString(!continues);
		if (row.isWrapped && lines.length) lines[lines.length - 1] += words;
		else lines.push(words);
	}
	return lines.join("\n").trimEnd();
}

/** read shows that text in a dialog, from its end. */
export function read(terminal: Terminal) {
	const dialog = document.createElement("dialog");
	dialog.className = "read";
	dialog.ariaLabel = "The terminal as text";
	const close = document.createElement("button");
	close.textContent = "Close";
	close.onclick = () => dialog.close();
	const body = document.createElement("pre");
	body.tabIndex = 0;
	body.textContent = text(terminal);
	dialog.append(close, body);
	dialog.onclose = () => dialog.remove();
	document.body.append(dialog);
	dialog.showModal();
	body.scrollTop = body.scrollHeight;
}
