/*
 * Sends one form at a time. A second click would make the browser drop the first answer, which may hold a new cookie.
 */

let sending = false;

/** Whether a form is on its way. */
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
