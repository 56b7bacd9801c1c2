// Ports of the server at which programs of a session listen. The page forwards none, and says what does.

import { ask, tell } from "./ask";

export class Ports {
	#open: number[] = [];

	/** The session has a name, and the host that for qt. */
	constructor(readonly host: string) {}

	/** changed takes the ports that are open now, and tells which of them were not before, and which have been closed. */
	changed(session: string, now: number[]) {
		const before = this.#open;
		this.#open = now;
		const opened = now.filter((port) => !before.includes(port));
		const closed = before.filter((port) => !now.includes(port));
		const news = [closed.length ? are(closed, "closed") : "", opened.length ? are(opened, "open") : ""].filter(Boolean);
		if (!news.length) return;
		const text = `${session}: ${news.join(", ")}`;
		if (!opened.length) {
			tell(text, {});
			return;
		}
		const command = ["qt forward", this.host, ...opened.map((port) => `-L ${port}:localhost:${port}`)].join(" ");
		tell(`${text}. In a terminal, ${command} forwards it here.`, {
			"Copy the command": () => {
				navigator.clipboard.writeText(command).catch(() => ask("The browser does not let this page copy.", { "Close": () => {} }));
			},
		});
	}
}

const are = (ports: number[], state: string) =>
	ports.length === 1 ? `port ${ports[0]} is ${state}` : `ports ${ports.join(" ")} are ${state}`;
