// Notifications, if the person has asked for them: by the page while it is open and not seen and, for a device that the
// server remembers, by its server while the page is not open (Web Push).

import type { Host } from "./client";
import { keepDevice, loadDevice, type Device } from "./device";
import { look, type Notice } from "./notice";

const asked = "notify"; // kept if the person has asked

let allowed = false;

const on = () => allowed && Notification.permission === "granted" && localStorage.getItem(asked) !== null;

const registered = async () => navigator.serviceWorker?.getRegistration();

/** subscription returns what the server needs to reach this device: wire.Notify, in base64url. */
export async function subscription(device?: Device): Promise<object | undefined> {
	if (!device?.signer) return undefined;
	const found = await (await registered())?.pushManager?.getSubscription();
	const keys = found?.toJSON().keys;
	return keys && { endpoint: found!.endpoint, key: keys.p256dh, auth: keys.auth, signer: device.signer };
}

async function unsubscribe(): Promise<void> {
	await (await (await registered())?.pushManager?.getSubscription())?.unsubscribe();
}

/** subscribe subscribes at the push service of this browser for messages that a new key signs. */
async function subscribe(): Promise<void> {
	const manager = (await registered())?.pushManager;
	const device = await loadDevice();
	if (!manager || !device) return;
	await unsubscribe();
	const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
	const applicationServerKey = await crypto.subtle.exportKey("raw", pair.publicKey);
	await manager.subscribe({ userVisibleOnly: true, applicationServerKey });
	await keepDevice({ ...device, signer: (await crypto.subtle.exportKey("jwk", pair.privateKey)).d });
}

/** offer lets the button turn notifications on and off. A device comes again then: each attach says what it wants. */
export function offer(host: Host, button: HTMLButtonElement, say: (text: string) => void) {
	try {
		allowed = !host.share && "Notification" in window && localStorage !== null;
	} catch {
		allowed = false; // a browser that keeps nothing
	}
	button.hidden = !allowed;
	const draw = () => { button.textContent = on() ? "Stop notifications" : "Notify me"; };
	button.onclick = async () => {
		const off = on();
		try {
			if (off) {
				localStorage.removeItem(asked);
				await unsubscribe();
			} else if (await Notification.requestPermission() === "granted") {
				localStorage.setItem(asked, "");
				if (host.device) await subscribe();
			} else {
				say("This browser does not let the page notify you: see its settings");
				return;
			}
			if (host.device && await registered()) location.reload();
		} catch (error) {
			say(`You are notified while this page is open, and not when it is closed: ${error}`);
		}
		draw();
	};
	if (allowed) draw();
}

/** notify shows a notice if the person has asked for that, and does not see the page. open is called if it is chosen. */
export async function notify(notice: Notice, open: () => void): Promise<void> {
	if (!allowed || !on() || document.visibilityState === "visible") return;
	if (await registered()) {
		const registration = await navigator.serviceWorker.ready; // it may still be installed, and shows nothing until then
		await registration.showNotification(notice.name, look(notice));
		return;
	}
	new Notification(notice.name, look(notice)).onclick = () => {
		window.focus();
		open();
	};
}
