// A line that is sent whole: for input methods, dictation, and keyboards that correct.

import type { Terminal } from "@xterm/xterm";

/** composeLine returns the line, which is hidden at first, and what shows it or hides it, with a text to begin with. */
export function composeLine(shown: () => Terminal | undefined) {
	const form = document.createElement("form");
	form.className = "compose";
	form.hidden = true;
	const input = document.createElement("input");
	input.ariaLabel = "A line to type";
	input.autocomplete = "off";
	input.enterKeyHint = "send";
	const send = document.createElement("button");
	send.textContent = "Send";
	send.onmousedown = (event) => event.preventDefault(); // the keyboard stays
	form.append(input, send);
	form.onsubmit = (event) => {
		event.preventDefault();
		const terminal = shown();
		if (!terminal) return;
		if (input.value) terminal.paste(input.value);
		terminal.input("\r"); // not within the paste, where it would be a line's end
		input.value = "";
	};
	const toggle = () => {
		form.hidden = !form.hidden;
		if (form.hidden) shown()?.focus();
		else input.focus();
	};
	return { form, toggle };
}
