// A question of the page, above the terminal, which does not take the keyboard. A later question takes the place of one
// that is not answered.

const place = document.getElementById("ask")!;

/** newsTime is how long news stay, in milliseconds, as in the title of a terminal. */
const newsTime = 20_000;

let news: number | undefined; // ends what is open, if that is news
let waiting: (() => void) | undefined;

/** asks reports whether a question is open, or news. */
export const asks = () => place.childElementCount > 0;

/** ask asks, with a button for each answer. */
export function ask(question: string, answers: Record<string, () => void>) {
	clearTimeout(news);
	news = undefined;
	const text = document.createElement("p");
	text.textContent = question;
	place.replaceChildren(text, ...Object.entries(answers).map(([name, act]) => {
		const button = document.createElement("button");
		button.textContent = name;
		button.onclick = () => {
			place.replaceChildren();
			act();
			next();
		};
		return button;
	}));
}

/** tell shows news for a time, with what can be done, when no question is open. Later news take their place. */
export function tell(text: string, acts: Record<string, () => void>) {
	if (asks() && news === undefined) {
		waiting = () => tell(text, acts);
		return;
	}
	ask(text, { ...acts, "Close": () => {} });
	news = setTimeout(() => {
		place.replaceChildren();
		next();
	}, newsTime);
}

/** next shows the news that wait, if it can. */
function next() {
	if (asks()) return;
	clearTimeout(news);
	news = undefined;
	waiting?.();
	waiting = undefined;
}
