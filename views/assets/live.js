/*
 * Keeps an open page up to date. It shows moments in the reader's time zone and counts them. While a dashboard is visible,
 * it asks for the status every two seconds, and replaces what changed.
 */

import { isSending } from './forms.js';
import { Idiomorph } from './idiomorph.esm.js';

const LOOK_EVERY_MS = 2_000;

/** Give up on a longer answer: the next one may come from another process. */
const LONGEST_ANSWER_MS = 10_000;

const moments = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** How far the server's clock is ahead. Countdowns follow the server. */
let aheadMs = 0;

function durationText(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) return `${seconds} s`;
  if (minutes < 10) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60)
    return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
  return `${Math.floor(minutes / (24 * 60))} days`;
}

/** @param mode `ahead` for a coming moment, `ago` for a past one */
function relativeText(at, mode) {
  const leftMs = at - Date.now() - aheadMs;
  if (mode === 'ahead') return leftMs < 1_000 ? 'any moment' : `in ${durationText(leftMs)}`;
  return leftMs > -5_000 ? 'just now' : `${durationText(-leftMs)} ago`;
}

function showTimes(root) {
  for (const element of root.querySelectorAll('time[datetime]')) {
    const at = Date.parse(element.dateTime);
    if (Number.isNaN(at)) continue;
    const { relative } = element.dataset;
    const text = relative ? relativeText(at, relative) : moments.format(at);
    if (element.textContent !== text) element.textContent = text;
    element.title = relative ? moments.format(at) : element.dateTime;
  }
}

async function ask(address, headers) {
  const answer = await fetch(address, { headers, signal: AbortSignal.timeout(LONGEST_ANSWER_MS) });
  aheadMs = Date.parse(answer.headers.get('date')) - Date.now();
  return answer;
}

function isEdited(element) {
  if (element.tagName !== 'INPUT') return false;
  return element.value !== element.defaultValue || element.checked !== element.defaultChecked;
}

/** Follows one instance: `dashboard.dataset.live` is its address. */
function follow(dashboard) {
  const mark = document.querySelector('[data-live-mark]');
  const address = dashboard.dataset.live;
  let { tag } = dashboard.dataset;
  let timer;

  function say(state, text) {
    mark.dataset.liveState = state;
    if (mark.textContent !== text) mark.textContent = text;
  }

  async function look() {
    const status = await ask(`${address}/status`, { 'If-None-Match': tag });
    // The answer to a form brings a newer page, and loading this one would drop it.
    if (status.status === 404) return isSending() || location.reload();
    if (status.status === 304) return say('live', 'Live');
    if (!status.ok) return say('lost', `Not live: ${(await status.json())._error.message}`);
    const page = await ask(address, {});
    if (!page.ok) return undefined;
    const next = new DOMParser().parseFromString(await page.text(), 'text/html');
    showTimes(next);
    Idiomorph.morph(dashboard, next.getElementById('dashboard'), {
      callbacks: {
        // What the reader has opened stays open, and what has been typed or ticked stays.
        beforeAttributeUpdated: (name, element) => !(name === 'open' && element.tagName === 'DETAILS'),
        beforeNodeMorphed: (element) => !isEdited(element),
      },
    });
    // What a message said was true of the status before, unless it leads somewhere.
    document.querySelector('.flash:not(:has(a))')?.remove();
    tag = status.headers.get('etag');
    return say('live', 'Live');
  }

  async function lookAgain() {
    clearTimeout(timer);
    if (document.visibilityState !== 'visible' || isSending()) return;
    await look().catch(() => say('lost', 'Not live: the app cannot be reached'));
    clearTimeout(timer);
    timer = setTimeout(lookAgain, LOOK_EVERY_MS);
  }

  document.addEventListener('visibilitychange', lookAgain);
  addEventListener('pageshow', (event) => event.persisted && lookAgain());
  void lookAgain();
}

showTimes(document);
setInterval(() => showTimes(document), 1_000);
const dashboard = document.getElementById('dashboard');
if (dashboard) follow(dashboard);
