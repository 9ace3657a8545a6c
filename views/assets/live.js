/*
 * Keeps an open page up to date. It shows moments in the reader's time zone and counts them. While a dashboard is visible,
 * it asks for the status every two seconds, and replaces what changed. Forms are sent from where the reader is: their
 * answer changes the page, and the focus stays.
 */

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

/** Replaces what differs. What the reader has opened, typed or ticked stays, but in a form that was sent. */
function replace(current, next, sent) {
  showTimes(next);
  const focused = document.activeElement;
  const around = [];
  for (let at = focused; at; at = at.parentElement) if (at.id) around.push(at.id);
  Idiomorph.morph(current, next, {
    callbacks: {
      beforeAttributeUpdated: (name, element) =>
        !(name === 'open' && element.tagName === 'DETAILS') &&
        !(name === 'tabindex' && element === document.activeElement),
      beforeNodeMorphed: (element) => sent?.contains(element) || !isEdited(element),
    },
  });
  if (focused === document.body || (focused.isConnected && focused.checkVisibility())) return;
  const near = around.map((id) => document.getElementById(id)).find((element) => element?.checkVisibility());
  if (near && near.tabIndex < 0) near.setAttribute('tabindex', '-1');
  near?.focus({ preventScroll: true });
}

function parse(html) {
  return new DOMParser().parseFromString(html, 'text/html');
}

/** When the page was last known to be true. */
let shownAt = Date.parse(document.body.dataset.loaded);

function say(state, text) {
  const mark = document.querySelector('[data-live-mark]');
  if (mark) mark.dataset.liveState = state;
  if (mark && state === 'live') mark.textContent = 'Live';
  const banner = document.getElementById('banner');
  const told = text && `Not live: ${text}. This page shows what was so at ${moments.format(shownAt)}.`;
  if (banner.textContent !== told) banner.textContent = told;
}

function isLive() {
  shownAt = Date.now() + aheadMs;
  say('live', '');
}

function isLost(text = navigator.onLine ? 'the app cannot be reached' : 'you are offline') {
  say('lost', text);
}

/** Whether a form is on its way: its answer brings a newer page. */
let sending = false;

async function look(dashboard) {
  const status = await ask(dashboard.dataset.live, { 'If-None-Match': dashboard.dataset.tag });
  if (sending) return;
  if (status.status === 404) return location.reload();
  if (status.status === 304) return isLive();
  if (!status.ok) return isLost((await status.json())._error.message.replace(/\.$/, ''));
  const page = await ask(location.pathname, {});
  if (!page.ok) return;
  const next = parse(await page.text()).getElementById('dashboard');
  if (sending || !next) return;
  replace(dashboard, next);
  // What a message said was true of the status before, unless it leads somewhere.
  document.querySelector('.flash:not(:has(a))')?.remove();
  isLive();
}

let timer;
async function lookAgain() {
  clearTimeout(timer);
  const dashboard = document.getElementById('dashboard');
  const isMistaken = document.querySelector('[aria-invalid]');
  if (!dashboard || document.visibilityState !== 'visible') return;
  if (!sending && !isMistaken) await look(dashboard).catch(() => isLost());
  clearTimeout(timer);
  timer = setTimeout(lookAgain, LOOK_EVERY_MS);
}

/** Sends one form at a time: a second click does nothing. */
addEventListener('submit', async (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  event.preventDefault();
  if (sending) return;
  sending = true;
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.action, { method: 'POST', body });
    const isHere = new URL(answer.url).pathname === location.pathname;
    if (answer.redirected && !isHere) return location.assign(answer.url);
    const next = parse(await answer.text());
    replace(document.querySelector('main'), next.querySelector('main'), form);
    document.querySelector('[aria-invalid]')?.focus();
  } catch {
    isLost('the app did not answer. Look whether it was done, then try again');
  } finally {
    sending = false;
  }
});

document.addEventListener('visibilitychange', lookAgain);
addEventListener('pageshow', (event) => event.persisted && lookAgain());
addEventListener('offline', () => isLost());
addEventListener('online', () => document.getElementById('dashboard') || say('', ''));
showTimes(document);
setInterval(() => showTimes(document), 1_000);
void lookAgain();
