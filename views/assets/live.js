/*
 * Keeps an open page up to date. The server sends the values that the page was rendered from, by the names in
 * its data attributes; without this file, or without a connection, the page simply stays as it was loaded.
 */

import { isSending } from './forms.js';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 60_000;

/** The server says every 15 seconds that it is there: who hears nothing for so long is connected to nobody. */
const LONGEST_SILENCE_MS = 40_000;

const moments = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** Shows a moment in the reader's own time zone. */
function showMoment(element) {
  const at = Date.parse(element.dateTime);
  if (Number.isNaN(at)) return;
  element.textContent = moments.format(at);
  element.title = element.dateTime;
}

function each(root, attribute, act) {
  for (const element of root.querySelectorAll(`[${attribute}]`))
    act(element, element.getAttribute(attribute));
}

/** Writes only what differs: a text that is set anew would be read out again, and lose its selection. */
function apply(root, values) {
  each(root, 'data-text', (element, name) => {
    const text = values.text[name];
    if (text !== undefined && element.textContent !== text) element.textContent = text;
  });
  each(root, 'data-time', (element, name) => {
    const moment = values.time[name] ?? '';
    if (element.dateTime === moment) return;
    element.dateTime = moment;
    showMoment(element);
  });
  each(root, 'data-show', (element, name) => {
    const shown = values.show[name];
    if (shown !== undefined) element.hidden = !shown;
  });
  each(root, 'data-attributes', (element, name) => {
    for (const [attribute, value] of Object.entries(values.attributes[name] ?? {})) {
      if (value === null) element.removeAttribute(attribute);
      else if (element.getAttribute(attribute) !== value) element.setAttribute(attribute, value);
    }
  });
}

/** Follows the stream while the page can be seen: a browser opens only a few connections to a host. */
function follow(root) {
  const mark = root.querySelector('[data-live-mark]');
  let source;
  let retry;
  let asking;
  let silence;
  let retryMs = FIRST_RETRY_MS;

  function say(state, text) {
    mark.hidden = false;
    mark.dataset.liveState = state;
    if (mark.textContent !== text) mark.textContent = text;
  }

  function disconnect() {
    clearTimeout(retry);
    clearTimeout(silence);
    asking?.abort();
    source?.close();
    source = undefined;
  }

  function loadAnew() {
    // The answer to a form brings a newer page, and loading this one would drop it.
    if (isSending()) return;
    disconnect();
    location.reload();
  }

  /** A stream does not say with which status it was refused: what that means has to be asked for, and the page says it. */
  async function askWhy(signal) {
    const answer = await fetch(root.dataset.live, { method: 'HEAD', signal });
    if (signal.aborted) return;
    if (answer.status === 404) loadAnew();
    if (answer.status === 429) say('reconnecting', 'Not live: too many pages are open');
  }

  /** A process that hangs, or a network that has gone, ends no connection: a new one may lead to another. */
  function awaitNext() {
    clearTimeout(silence);
    silence = setTimeout(() => {
      say('reconnecting', 'Reconnecting …');
      connect();
    }, LONGEST_SILENCE_MS);
  }

  function connect() {
    disconnect();
    awaitNext();
    source = new EventSource(root.dataset.live);
    source.addEventListener('alive', awaitNext);
    source.onmessage = (event) => {
      awaitNext();
      const status = JSON.parse(event.data);
      retryMs = FIRST_RETRY_MS;
      // Another state has other buttons; the server knows which.
      if (status.status !== root.dataset.status) return loadAnew();
      say('live', 'Live');
      apply(root, status.view);
    };
    source.addEventListener('gone', loadAnew);
    source.addEventListener('outage', (event) => {
      say('reconnecting', 'Not live');
      apply(root, JSON.parse(event.data).view);
    });
    source.onerror = () => {
      say('reconnecting', 'Reconnecting …');
      // The browser itself comes back after a broken connection, but not after an answer that is an error.
      if (source?.readyState !== EventSource.CLOSED) return;
      disconnect();
      retry = setTimeout(connect, retryMs);
      retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
      asking = new AbortController();
      // What cannot be told now is asked again when the next connection fails.
      askWhy(asking.signal).catch(() => {});
    };
  }

  function followVisibility() {
    if (document.visibilityState === 'visible') connect();
    else disconnect();
  }

  document.addEventListener('visibilitychange', followVisibility);
  addEventListener('pagehide', disconnect);
  addEventListener('pageshow', (event) => {
    if (event.persisted) followVisibility();
  });
  followVisibility();
}

for (const element of document.querySelectorAll('time[datetime]')) showMoment(element);
const page = document.querySelector('[data-live]');
if (page) follow(page);
