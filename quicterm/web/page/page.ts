// The page: terminals of xterm.js for the sessions of one host, and the client in a worker. This file only wires the parts.

import "@xterm/xterm/css/xterm.css";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Client, type Host, type Message, type Session } from "./client";
import { ask } from "./ask";
import { askToCopy } from "./clipboard";
import { enter, forgotten, guest, remember } from "./enter";
import { keep, keepScreen, kept, keptScreen } from "./kept";
import { List, time } from "./list";
import { notify, offer } from "./notify";
import { onPhone, Phone } from "./phone";
import { Ports } from "./ports";
import "./page.css";
import { searchable, searchBy } from "./search";
import type { Tab } from "./tab";
import { label, Tabs } from "./tabs";
import { follow } from "./theme";
import { Upload } from "./upload";

// The link is removed at once: neither the history of the browser nor whoever sees the screen gets its secret.
const link = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname);

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const say = (text: string) => { element("status").textContent = text; };

const client = new Client(receive, () => say("The client has failed: reload the page"));
const tabs = new Tabs(client, element("tabs"), element("terminals"), equip, changed);
const list = new List(client, element<HTMLDialogElement>("list"), (session, name) => tabs.open(session, name));
const search = searchBy(element<HTMLFormElement>("search"), () => tabs.shown);
element("sessions").onclick = () => list.show();
element("forget").onclick = () => client.send({ forget: true });
element("find").onclick = search;
let upload: Upload | undefined; // no guest has it
for (const [id, event] of [["list", "close"], ["ask", "click"]]) {
	element(id).addEventListener(event, () => tabs.shown?.terminal.focus());
}

/** What Ctrl-Shift and a key do: the terminal takes all other keys, Tab too. */
const shortcuts: Record<string, () => void> = { KeyF: search, KeyL: () => element("sessions").click() };
addEventListener("keydown", (event) => {
	const act = event.ctrlKey && event.shiftKey ? shortcuts[event.code] : undefined;
	if (!act) return;
	event.preventDefault();
	event.stopPropagation();
	act();
}, true); // before the terminal

let remembered = false; // this device is
let hostName = "";
const phone = onPhone ? new Phone(() => tabs.shown) : undefined;
const chosen = link.get("o"); // in a notification
let restoring = chosen ? [...kept(), chosen] : link.size > 0 ? [] : kept();
element("last").textContent = keptScreen();
if (location.hostname !== "127.0.0.1") { // that is qt web, on another port each time
	navigator.serviceWorker?.addEventListener("message", ({ data }) => tabs.open(data.open));
	navigator.serviceWorker?.startMessages();
	navigator.serviceWorker?.register("service.js", { updateViaCache: "none" }).catch(() => {}); // then it needs a network to start
}

function receive(message: Message) {
	if (message.tab !== undefined) tabs.receive(message);
	upload?.receive(message);
	if (message.ready !== undefined) start();
	if (message.host) arrived(message.host);
	if (message.failed !== undefined) say(message.failed);
	if (message.forgotten === "") forget();
	if (message.forgotten !== undefined) forgotten(message.forgotten).then(say);
	if (message.sessions || message.unlisted) list.receive(message);
	if (message.unlisted?.denied) forget();
	if (message.sessions && restoring.length) restore(message.sessions);
}

/** start connects to the host of the link, or to the one that knows this device. */
async function start() {
	const way = await enter(link).catch(() => undefined); // a browser that keeps nothing
	if (!way) {
		say("This page needs a link: run qt web --qr, or qt web. If another tab has this page, open sessions there");
		return;
	}
	say("Connecting");
	client.send({ start: { socket: new URL("socket", location.href.replace(/^http/, "ws")).href, ...way } });
}

/** arrived is called once, when the host is known. */
function arrived(host: Host) {
	say("");
	hostName = host.host;
	element("forget").hidden = !host.device;
	element("sessions").hidden = Boolean(host.share);
	element<HTMLButtonElement>("sessions").disabled = Boolean(host.share);
	if (!host.share) upload = new Upload(() => tabs.shown);
	offer(host, element<HTMLButtonElement>("notify"), (text) => ask(text, { "Close": () => {} }));
	remembered = host.device;
	if (host.device) remember().catch((error) => ask(`This device is not remembered: ${error}`, { "Close": () => {} }));
	if (host.note) ask(host.note, { "Close": () => {} });
	if (host.share) ask(guest(host), { "Close": () => {} });
	if (host.session || !host.device) tabs.open(host.session);
	else list.show();
}

/** restore opens the sessions of the last visit that the server still has. It says how those have ended that have since. */
function restore(sessions: Session[]) {
	const there = restoring.filter((id) => sessions.some((session) => session.id === id));
	for (const id of there) tabs.open(id, sessions.find((session) => session.id === id)!.name);
	const gone = new Set(restoring).size - new Set(there).size;
	if (gone) ask(`${gone === 1 ? "A session" : gone + " sessions"} of your last visit ended meanwhile.`, { "Close": () => {} });
	if (there.length) list.close();
	restoring = [];
}

/** forget forgets what was kept: this browser has no access any more. */
function forget() {
	restoring = [];
	keep([]);
	keepScreen("");
	element("last").textContent = "";
}

/** equip gives a new tab what is not the terminal's own. */
function equip(tab: Tab) {
	tab.terminal.loadAddon(new WebLinksAddon());
	follow(tab);
	searchable(tab);
	askToCopy(tab);
	phone?.equip(tab);
	const ports = new Ports(hostName);
	tab.listens = (open) => ports.changed(tab.name, open);
	tab.wants = (text) => notify({ session: tab.session, name: tab.name, text }, () => tabs.show(tab));
}

/** changed is called when another tab is shown, or something of one has changed. */
function changed(tab?: Tab) {
	phone?.draw();
	document.title = tab ? label(tab) : "quicterm";
	if (!restoring.length) keep(tabs.sessions());
	element("last").hidden = tab !== undefined;
	if (!tab) say("");
	else if (tab.ended) say(tab.ended.text);
	else if (tab.link.state === "offline") say(`Offline since ${time(tab.link.since)}: what you type waits`);
	else say(tab.link.state === "connecting" ? "Connecting" : "");
}

// After a sleep, or in another network, a connection that seems to be open may be none.
addEventListener("online", () => client.send({ network: "woke" }));
addEventListener("offline", () => client.send({ network: "changed" }));
addEventListener("pageshow", () => client.send({ network: "woke" }));
document.addEventListener("visibilitychange", () => {
	if (document.visibilityState !== "visible") {
		const { shown } = tabs;
		if (!restoring.length) keepScreen(remembered && shown && !shown.ended ? shown.text() : "");
		return;
	}
	client.send({ network: "woke" });
	list.ask();
	tabs.seen();
});
