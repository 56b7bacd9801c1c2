// A question of the page, above the terminal, which does not take the keyboard. A later question takes the place of one
// that is not answered.

const place = document.getElementById("ask")!;

/** asks reports whether a question is open. */
export const asks = () => place.childElementCount > 0;

/** ask asks, with a button for each answer. */
export function ask(question: string, answers: Record<string, () => void>) {
	const text = document.createElement("p");
	text.textContent = question;
	place.replaceChildren(text, ...Object.entries(answers).map(([name, act]) => {
		const button = document.createElement("button");
		button.textContent = name;
		button.onclick = () => {
			place.replaceChildren();
			act();
		};
		return button;
	}));
}
