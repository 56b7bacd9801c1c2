// The page: a terminal of xterm.js, and the client in a worker, where its work does not delay what is drawn. What the two
// say to each other is in cmd/qtweb/main.go.

import { FitAddon } from "@xterm/addon-fit";
import { WebglAddon } from "@xterm/addon-webgl";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import "./page.css";

// The link is removed at once: neither the history of the browser nor whoever sees the screen gets its secret.
const link = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname);

const status = document.getElementById("status")!;
const say = (text: string) => { status.textContent = text; };

const terminal = new Terminal({ scrollback: 10000, macOptionIsMeta: true, screenReaderMode: true });
const fit = new FitAddon();
terminal.loadAddon(fit);
terminal.open(document.getElementById("terminal")!);
try {
	const webgl = new WebglAddon();
	webgl.onContextLoss(() => webgl.dispose()); // the slower renderer takes over
	terminal.loadAddon(webgl);
} catch {
	// this browser has none
}
fit.fit();
new ResizeObserver(() => fit.fit()).observe(document.getElementById("terminal")!);

const version = new URL(import.meta.url).search;
const worker = new Worker("worker.js" + version, { type: "module" });
let running = false;
let over = false;
const send = (message: object) => {
	if (running && !over) worker.postMessage(message);
};

worker.onerror = () => end("The client has failed: reload the page");
worker.onmessage = ({ data }) => {
	if (data.ready !== undefined) start();
	if (data.output !== undefined) {
		const output: Uint8Array = data.output;
		terminal.write(output, () => send({ shown: output.length }));
	}
	if (data.link !== undefined) say(data.link === "live" ? "" : data.link);
	if (data.ended !== undefined) end(data.ended);
};

function start() {
	const value = (name: string) => link.get(name) ?? undefined;
	if (!link.has("s") && !link.has("t")) {
		end("This page needs a link that is good once: run qt web");
		return;
	}
	say("Connecting");
	running = true;
	send({
		start: {
			socket: new URL("socket", location.href.replace(/^http/, "ws")).href,
			secret: value("s"), token: value("t"), key: value("k"), host: value("h"), session: value("n"),
			size: [terminal.cols, terminal.rows],
		},
	});
	terminal.focus();
}

function end(text: string) {
	if (over) return;
	over = true;
	say(text);
	terminal.options.disableStdin = true;
}

terminal.onData((keys) => send({ keys }));
terminal.onResize(({ cols, rows }) => send({ size: [cols, rows] }));
terminal.onTitleChange((title) => { document.title = title || "quicterm"; });

// After a sleep, or in another network, a connection that seems to be open may be none.
addEventListener("online", () => send({ network: "changed" }));
addEventListener("offline", () => send({ network: "changed" }));
addEventListener("pageshow", () => send({ network: "woke" }));
document.addEventListener("visibilitychange", () => {
	if (document.visibilityState === "visible") send({ network: "woke" });
});
