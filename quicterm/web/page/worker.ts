// The worker runs the client, which talks to the page itself.

import "wasm_exec";

declare const Go: new () => { importObject: WebAssembly.Imports; run(i: WebAssembly.Instance): Promise<void> };

const go = new Go();
WebAssembly.instantiateStreaming(fetch("qtweb.wasm" + location.search), go.importObject)
	.then(({ instance }) => go.run(instance))
	.catch((error) => postMessage({ ended: "This browser does not run the client: " + error }));
