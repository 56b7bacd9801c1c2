// How the page gets in: by the token of qt web, by a link that qt has printed, or by the key of this device.

import type { Host } from "./client";
import { deviceName, forgetDevice, keepDevice, loadDevice, makeKey, type Device } from "./device";
import { time } from "./list";
import { subscription } from "./notify";

/** offered is the key that was made for a link. */
let offered: Device | undefined;

/** enter returns what the client needs to know to connect: with the fields of start in cmd/qtweb/host.go. */
export async function enter(link: URLSearchParams): Promise<object | undefined> {
	if (link.has("s")) return { secret: link.get("s") };
	if (link.has("g")) return { link: link.toString() };
	const device = link.has("e") ? await offer(link) : await loadDevice();
	const fragment = link.has("e") ? link.toString() : device?.link;
	if (!fragment) return undefined;
	const push = await subscription(device).catch(() => undefined);
	return { link: fragment, device: device && { public: device.public, key: device.key }, name: device?.name, push };
}

/** offer asks whether this browser shall be remembered, and makes its key. */
async function offer(link: URLSearchParams): Promise<Device | undefined> {
	const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
	const dialog = element<HTMLDialogElement>("enter");
	const name = element<HTMLInputElement>("enter-name");
	element("enter-host").textContent = `${link.get("u")}@${link.get("h")}`;
	element("enter-origin").textContent = location.origin;
	name.value = deviceName();
	dialog.showModal();
	await new Promise((resolve) => { dialog.onclose = resolve; });
	if (dialog.returnValue !== "remember") return undefined;
	const without = new URLSearchParams(link);
	for (const secret of ["e", "n"]) without.delete(secret);
	return offered = { ...await makeKey(), link: without.toString(), name: name.value };
}

/** remember keeps the key that was made, once the server knows it. */
export async function remember(): Promise<void> {
	if (offered) await keepDevice(offered);
}

/** forgotten forgets this device when the server has, and says so, or why not. */
export async function forgotten(why: string): Promise<string> {
	if (why) return `This device is not forgotten: ${why}`;
	await forgetDevice();
	return "This device is forgotten";
}

/** guest says what a guest may do. */
export function guest({ host, session, share }: Host): string {
	return `You are a guest of ${location.origin} in session ${session} of ${host}: you ${share!.types ? "see and type" : "watch"} until ${time(share!.until)}.`;
}
