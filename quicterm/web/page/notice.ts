// A notice about a session, which the page shows, or the service worker for it.

/** As Message in quicterm/holder/push has it. */
export interface Notice {
	session: string;
	name: string;
	text: string;
}

/** look is how a notice looks. A later one of the session takes its place. */
export const look = ({ session, text }: Notice) => ({ body: text, tag: session, data: session, icon: "icon.png" });
