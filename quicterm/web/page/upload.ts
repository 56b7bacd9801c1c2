// Files of this device that go to the server: chosen, dropped onto the page, or pasted. The client reads and copies them; the
// page shows how far it is, in a line for each tab, and pastes the path of what was pasted.

import { ask } from "./ask";
import type { Message } from "./client";
import type { Tab } from "./tab";

/** shownTime is for how many milliseconds a line shows that files were copied. */
const shownTime = 10_000;

/** A line is about the files of a tab. */
interface Line {
	element: HTMLElement;
	about: string;
	copies: boolean; // still
}

const say = (text: string) => ask(text, { "Close": () => {} });

export class Upload {
	readonly #lines = new Map<number, Line>();

	/** shown returns the tab that is shown. */
	constructor(readonly shown: () => Tab | undefined) {
		const button = document.getElementById("files")!;
		const chosen = document.getElementById("chosen") as HTMLInputElement;
		button.hidden = false;
		button.onclick = () => ask("Copy to the server:", {
			"Choose files": () => chosen.click(),
			"Picture in the clipboard": () => this.#clipboard(),
			"Close": () => {},
		});
		chosen.onchange = () => {
			this.#copy(chosen.files!);
			chosen.value = "";
		};
		addEventListener("dragover", (event) => {
			if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); // else it cannot be dropped
		});
		addEventListener("drop", (event) => {
			if (!event.dataTransfer?.files.length) return;
			event.preventDefault();
			this.#copy(event.dataTransfer.files);
		});
		addEventListener("paste", (event) => {
			const data = event.clipboardData;
			if (!data?.files.length || data.types.includes("text/plain") || !(event.target as Element).closest("#terminals")) return;
			event.preventDefault();
			event.stopPropagation();
			this.#paste(data.files[0]);
		}, true); // before the terminal
	}

	/** receive takes what the client says of files. */
	receive({ tab, copying, copied }: Message) {
		const line = this.#lines.get(tab!);
		if (!line) return;
		if (copying !== undefined) line.element.firstElementChild!.textContent = `${line.about}: ${copying}`;
		if (!copied) return;
		line.copies = false;
		const remove = () => this.#remove(tab!, line);
		if (!copied.text) remove();
		else show(line, copied.text, "Close", remove);
		if (!copied.failed) setTimeout(remove, shownTime);
	}

	#copy(files: FileList) {
		const about = files.length === 1 ? files[0].name : `${files.length} files`;
		this.#begin(about, (tab) => ({ copy: { session: tab.session, files: [...files] } }));
	}

	#paste(file: File) {
		this.#begin("What you paste", () => ({ paste: file }));
	}

	async #clipboard() {
		try {
			const item = (await navigator.clipboard.read()).find(({ types }) => types.includes("image/png"));
			if (item) this.#paste(new File([await item.getType("image/png")], "picture.png"));
			else say("The clipboard has no picture.");
		} catch {
			say("The browser does not let this page read the clipboard: paste into the terminal, or choose a file.");
		}
	}

	/** begin asks the client to copy something for the tab that is shown. */
	#begin(about: string, request: (tab: Tab) => object) {
		const tab = this.shown();
		if (!tab?.session || tab.ended) {
			say("Files are copied to where a session is: open one first.");
			return;
		}
		const old = this.#lines.get(tab.id);
		if (old?.copies) {
			say("Wait until the files are copied, or stop that.");
			return;
		}
		if (old) this.#remove(tab.id, old);
		const line = { element: document.createElement("div"), about, copies: true };
		this.#lines.set(tab.id, line);
		show(line, `${about}: connecting`, "Stop", () => tab.send({ stop: true }));
		document.getElementById("copies")!.append(line.element);
		tab.closed.addEventListener("abort", () => this.#remove(tab.id, line));
		tab.send(request(tab));
		tab.terminal.focus();
	}

	#remove(tab: number, line: Line) {
		line.element.remove();
		if (this.#lines.get(tab) === line) this.#lines.delete(tab);
	}
}

/** show has a line show a text, and a button that does something. */
function show(line: Line, text: string, name: string, act: () => void) {
	const shown = document.createElement("p");
	shown.textContent = text;
	const button = document.createElement("button");
	button.textContent = name;
	button.onclick = act;
	line.element.replaceChildren(shown, button);
}
