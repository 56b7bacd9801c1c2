// The client, in a worker, where its work does not delay what is drawn. What the two say to each other is in
// cmd/qtweb/main.go.

/** A session of the account, as the list has it. Times are as Date has them. */
export interface Session {
	id: string;
	name: string;
	state: "attached" | "detached" | "exited" | "lost";
	since: number;
	pty: boolean;
	command: string;
	clients: string[];
	status?: number;
	runs?: string;
	waits?: "prompt" | "input" | "nothing" | "";
	waitsSince?: number;
}

/** The state of a connection, and since when it is so. */
export interface Link {
	state: "connecting" | "live" | "moving" | "suspect" | "offline";
	since: number;
}

/** The host that the page leads to. */
export interface Host {
	host: string;
	session: string;
	device: boolean; // it knows this device
	note: string;
	share?: { types: boolean; until: number };
}

/** The size of a session, whether it is that of this screen, and else whose. */
export interface Sizing {
	size: [cols: number, rows: number];
	own: boolean;
	client: string;
}

/** What the client says. With a tab, it is about the session there. */
export interface Message {
	tab?: number;
	ready?: string;
	host?: Host;
	failed?: string;
	sessions?: Session[];
	unlisted?: { text: string; denied: boolean };
	forgotten?: string;
	attached?: { id: string; name: string; created: boolean };
	sizing?: Sizing;
	output?: Uint8Array<ArrayBuffer>;
	link?: Link;
	waits?: true;
	ports?: number[];
	copying?: string;
	copied?: { text: string; path: string; failed: boolean };
	ended?: { text: string; status?: number };
}

export class Client {
	readonly #worker: Worker;
	#runs = false;

	/** receive gets all messages; failed says that there will be none any more. */
	constructor(receive: (message: Message) => void, failed: () => void) {
		const version = new URL(import.meta.url).search;
		this.#worker = new Worker("worker.js" + version, { type: "module" });
		this.#worker.onerror = failed;
		this.#worker.onmessage = ({ data }: MessageEvent<Message>) => {
			this.#runs ||= data.ready !== undefined;
			receive(data);
		};
	}

	/** send says something to the client, or nothing before it is ready. */
	send(message: object) {
		if (this.#runs) this.#worker.postMessage(message);
	}
}
