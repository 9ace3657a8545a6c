// What the panel says to the control interface, and what came of it.

const failed = document.querySelector('#failed');
const said = document.querySelector('#said');

async function answerOf(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body._error.message);
  return body;
}

/** What the panel shows: requests after the newest that it has, or all of them after a reset that it does not know. */
export async function read({ after, resets }) {
  return answerOf(await fetch(`/panel.json?after=${after}&resets=${resets}`));
}

/** A call of the control interface, in JSON. Throws an Error with the reason that the sandbox gives. */
export async function control(method, path, body) {
  const init = { method };
  if (body !== undefined) {
    init.headers = { 'content-type': 'application/json' };
    init.body = JSON.stringify(body);
  }
  return answerOf(await fetch(`/_sandbox/${path}`, init));
}

/** Shows, and lets screen readers say, that something did not work. */
export function showFailure(error) {
  failed.hidden = false;
  failed.textContent = error.message;
}

/** Takes the last failure away. */
export function clearFailure() {
  failed.hidden = true;
}

/** Does what a button is for, and says what came of it. @param words made of the answer, once it is done */
export async function act(work, words) {
  try {
    const answer = await work();
    clearFailure();
    said.textContent = words(answer);
    document.dispatchEvent(new Event('changed'));
    return answer;
  } catch (error) {
    showFailure(error);
    return undefined;
  }
}
