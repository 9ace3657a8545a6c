/*
 * Sends one form of a page at a time. Whoever presses a button again makes the browser drop the answer to the first
 * time, and a new cookie may be in it, of which there is no other copy. Whoever stops the browser meanwhile loads the
 * page anew. Without this file every form is sent.
 */

let sending = false;

/** Whether a form is on its way, so that the page must not be left for another reason. */
export function isSending() {
  return sending;
}

addEventListener('submit', (event) => {
  if (event.target.method !== 'post') return;
  if (sending) event.preventDefault();
  sending = true;
});

// A page that comes back out of the browser's memory is as it was left.
addEventListener('pageshow', (event) => {
  if (event.persisted) sending = false;
});
