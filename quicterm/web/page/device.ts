// What this browser keeps of a server that lets it in without a link: a key that it signs with and gives to no program.

export interface Device {
	key: CryptoKey;
	public: ArrayBuffer; // raw
	link: string; // the fragment that leads to the server, without a secret
	name: string; // at the server
	signer?: string; // the private key that signs messages to this device, base64url, if it has subscribed for some
}

const store = "device";

function transact<T>(mode: IDBTransactionMode, act: (devices: IDBObjectStore) => IDBRequest<T>): Promise<T> {
	return new Promise((resolve, reject) => {
		const opening = indexedDB.open("quicterm-device");
		opening.onupgradeneeded = () => opening.result.createObjectStore(store);
		opening.onerror = () => reject(opening.error);
		opening.onsuccess = () => {
			const database = opening.result;
			const transaction = database.transaction(store, mode);
			const request = act(transaction.objectStore(store));
			transaction.oncomplete = () => resolve(request.result);
			transaction.onabort = () => reject(transaction.error);
			database.close(); // when the transaction has ended
		};
	});
}

// A page has one device: there is one server behind it.
const only = 1;

export const loadDevice = (): Promise<Device | undefined> => transact("readonly", (devices) => devices.get(only));
export const forgetDevice = (): Promise<undefined> => transact("readwrite", (devices) => devices.delete(only));

export async function keepDevice(device: Device): Promise<void> {
	await transact("readwrite", (devices) => devices.put(device, only));
	await navigator.storage?.persist?.(); // or the browser may erase it when its disk is full
}

// makeKey makes a key that no program can read.
export async function makeKey(): Promise<Pick<Device, "key" | "public">> {
	const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]);
	return { key: pair.privateKey, public: await crypto.subtle.exportKey("raw", pair.publicKey) };
}

// deviceName says what this browser is, for the list of devices.
export function deviceName(agent = navigator.userAgent): string {
	const first = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(agent))?.[1];
	const browser = first([
		[/Edg/, "Edge"], [/OPR/, "Opera"], [/Firefox|FxiOS/, "Firefox"], [/Chrom|CriOS/, "Chrome"], [/Safari/, "Safari"],
	]);
	const system = first([
		[/Android/, "Android"], [/iPhone/, "iPhone"], [/iPad/, "iPad"], [/Mac OS/, "macOS"], [/Windows/, "Windows"],
		[/CrOS/, "ChromeOS"], [/Linux/, "Linux"],
	]);
	return `${browser ?? "browser"}${system ? ` on ${system}` : ""}`;
}
