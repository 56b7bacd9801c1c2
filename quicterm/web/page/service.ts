// The service worker: the page starts without a network, from the files of the last version that it has been given. What
// the page does goes through a WebSocket, which no service worker sees.

import { look, type Notice } from "./notice";

interface LifeEvent extends Event {
	waitUntil(done: Promise<unknown>): void;
}
interface FetchEvent extends LifeEvent {
	readonly request: Request;
	respondWith(response: Promise<Response>): void;
}
interface PushEvent extends LifeEvent {
	readonly data?: { json(): Notice };
}
interface ClickEvent extends LifeEvent {
	readonly notification: Notification;
}
interface Page {
	readonly visibilityState: string;
	focus(): Promise<unknown>;
	postMessage(message: object): void;
}
declare function skipWaiting(): Promise<void>;
declare const registration: ServiceWorkerRegistration;
declare const clients: {
	claim(): Promise<void>;
	matchAll(options: object): Promise<Page[]>;
	openWindow(url: string): Promise<unknown>;
};

const version = "VERSION";
const start = "./";
const files = ["page.css", "page.js", "worker.js", "qtweb.wasm", "manifest.webmanifest", "icon.svg", "icon.png"];

/** patience is how many milliseconds the network has to bring the first file. */
const patience = 2000;

async function install() {
	const cache = await caches.open(version);
	await cache.addAll([start, ...files.map((file) => `${file}?${version}`)]);
	await skipWaiting();
}

async function activate() {
	const names = await caches.keys();
	await Promise.all(names.filter((name) => name !== version).map((name) => caches.delete(name)));
	await clients.claim();
}

/** first returns the first file from the network, which may have a new version, or else as it was. */
async function first(): Promise<Response> {
	try {
		const answer = await fetch(start, { signal: AbortSignal.timeout(patience) });
		if (answer.ok) return answer;
	} catch {
		// there is no network, or a slow one
	}
	return (await caches.match(start)) ?? Response.error();
}

const other = async (request: Request) => (await caches.match(request)) ?? fetch(request);

const pages = () => clients.matchAll({ type: "window", includeUncontrolled: true });

/** pushed shows a message of the server, unless the person sees the page. */
async function pushed(notice?: Notice) {
	if (!notice || (await pages()).some((page) => page.visibilityState === "visible")) return;
	await registration.showNotification(notice.name, look(notice));
}

/** chosen shows a session, in the page if that is open. */
async function chosen(notification: Notification) {
	notification.close();
	const [page] = await pages();
	page?.postMessage({ open: notification.data });
	await (page ? page.focus() : clients.openWindow(`${start}#o=${notification.data}`));
}

addEventListener("push", (event) => (event as PushEvent).waitUntil(pushed((event as PushEvent).data?.json())));
addEventListener("notificationclick", (event) => (event as ClickEvent).waitUntil(chosen((event as ClickEvent).notification)));
addEventListener("install", (event) => (event as LifeEvent).waitUntil(install()));
addEventListener("activate", (event) => (event as LifeEvent).waitUntil(activate()));
addEventListener("fetch", (event) => {
	const { request, respondWith } = event as FetchEvent;
	if (request.method !== "GET") return;
	respondWith.call(event, request.mode === "navigate" ? first() : other(request));
});
