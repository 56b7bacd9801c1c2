// What keyboards on glass type. They name no key (keyCode 229), compose words that change under the cursor, and correct
// what was typed before. xterm.js sends such text in several ways at once, and some of it twice: for these events it is
// left out here, and each change of its text field is sent once, as characters and DELs.

import type { Terminal } from "@xterm/xterm";

/** unnamed is the keyCode of a key that goes through an input method. */
const unnamed = 229;

/** maxKept bounds the text in characters that the field keeps for the keyboard to correct. */
const maxKept = 1000;

/** converted finds text that an input method has not converted yet: it is sent when it is whole. */
const converted =
	/[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}\p{Script=Hangul}\p{Script=Bopomofo}\uff01-\uff5e]/u;

/** guard takes the place of xterm.js for such events of a terminal within an element. */
export function guard(terminal: Terminal, element: HTMLElement, signal: AbortSignal) {
	const field = terminal.textarea!;
	field.autocomplete = "off";
	let sent = ""; // what the field had when the program was told
	let composes = false;
	let named = false; // a key that xterm.js handles is down: what it changes in the field was sent

	const tell = () => {
		const value = field.value;
		const now = [...value], before = [...sent];
		let same = 0;
		while (same < now.length && same < before.length && now[same] === before[same]) same++;
		sent = value;
		const text = now.slice(same).join("").replace(/\r?\n/g, "\r");
		if (text || before.length > same) terminal.input("\x7f".repeat(before.length - same) + text);
	};
	const forget = () => {
		field.value = sent = "";
	};
	const emptied = () => { // by xterm.js, as it pastes: no key has deleted that
		if (!field.value) sent = "";
	};
	const on = <K extends keyof HTMLElementEventMap>(name: K, act: (event: HTMLElementEventMap[K]) => void) =>
		element.addEventListener(name, (event) => {
			if (event.target === field) act(event);
		}, { capture: true, signal });

	on("keydown", (event) => {
		if (event.keyCode === unnamed || composes) {
			event.stopPropagation();
			named = false;
			return;
		}
		emptied();
		tell(); // what was typed before it
		if (!["Shift", "Control", "Alt", "Meta", "CapsLock"].includes(event.key)) {
			forget();
			named = true;
		}
	});
	on("keyup", (event) => {
		if (event.keyCode === unnamed) event.stopPropagation();
		else named = false;
	});
	on("compositionstart", (event) => {
		event.stopPropagation();
		composes = true;
		named = false;
	});
	on("compositionupdate", (event) => event.stopPropagation());
	on("compositionend", (event) => {
		event.stopPropagation();
		composes = false;
		setTimeout(() => { // in some browsers the field changes after it
			if (!composes) tell();
		});
	});
	on("beforeinput", (event) => {
		emptied();
		if (event.inputType === "deleteContentBackward" && !field.value && !named) terminal.input("\x7f");
	});
	on("input", (event) => {
		event.stopPropagation();
		if (named) {
			sent = field.value;
			return;
		}
		if (composes && converted.test(field.value.slice(sent.length))) return;
		tell();
		if (!composes && (field.value.length > maxKept || field.value.endsWith("\n"))) forget();
	});
	on("blur", () => {
		composes = named = false;
		forget();
	});
}
