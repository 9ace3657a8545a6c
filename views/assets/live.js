/*
 * Keeps an open page up to date. It shows moments in the reader's time zone and counts them. While a dashboard is visible,
 * it asks for the status every two seconds, and replaces what changed. Forms are sent from where the reader is: their
 * answer changes the page, and the focus stays.
 */

import { Idiomorph } from './idiomorph.esm.js';

const LOOK_EVERY_MS = 2_000;

/** The operator's page has no status that says whether it has changed. */
const LOOK_SELDOM_MS = 10_000;

/** Give up on a longer answer: the next one may come from another process. A form may have much to do. */
const LONGEST_ANSWER_MS = 10_000;
const LONGEST_FORM_MS = 60_000;

/** A form without an answer for longer is told. */
const LATE_ANSWER_MS = 3_000;

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
  if (element.tagName === 'SELECT') {
    const options = [...element.options];
    return element.selectedOptions[0] !== (options.find((option) => option.defaultSelected) ?? options[0]);
  }
  if (element.tagName !== 'INPUT') return false;
  return element.value !== element.defaultValue || element.checked !== element.defaultChecked;
}

/** Replaces what differs. What the reader has opened, typed, ticked or chosen stays, but in a form that was sent. */
function replace(current, next, sent) {
  showTimes(next);
  const focused = document.activeElement;
  const around = [];
  for (let at = focused; at; at = at.parentElement) if (at.id) around.push(at.id);
  // A chart that is read, and a form whose mistake is told.
  const isKept = (element) =>
    element.dataset?.used !== undefined ||
    (element.tagName === 'FORM' && element !== sent && element.querySelector('[aria-invalid]') !== null);
  Idiomorph.morph(current, next, {
    callbacks: {
      beforeAttributeUpdated: (name, element) =>
        !(name === 'open' && element.tagName === 'DETAILS') &&
        !(name === 'tabindex' && element === document.activeElement),
      beforeNodeMorphed: (element) => sent?.contains(element) || !(isKept(element) || isEdited(element)),
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

/** Says it above the page, for a reader of screens, too. */
function tell(text, tone) {
  const flash = document.createElement('p');
  Object.assign(flash, { className: 'flash', textContent: text });
  flash.dataset.tone = tone;
  document.getElementById('news').replaceChildren(flash);
}

/** When the page was last known to be true. */
let shownAt = Date.parse(document.body.dataset.loaded);

function say(state, text) {
  const mark = document.querySelector('[data-live-mark]');
  if (mark) mark.dataset.liveState = state;
  // Where nothing tells of a change, the moment stays.
  const isFollowed = document.querySelector('[data-live]')?.dataset.live;
  if (mark && isFollowed && state === 'live') mark.textContent = 'Live';
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

/** The forms that were sent so far, and whether the last one is on its way: its answer is newer than what a look finds. */
let forms = 0;
let sending = false;

async function look(dashboard) {
  const before = forms;
  const { live, tag } = dashboard.dataset;
  if (live) {
    const status = await ask(live, { 'If-None-Match': tag });
    if (forms !== before) return;
    if (status.status === 404) return location.reload();
    if (status.status === 304) return isLive();
    if (!status.ok) return isLost((await status.json())._error.message.replace(/\.$/, ''));
  }
  const page = await ask(location.pathname + location.search, {});
  const next = page.ok && parse(await page.text()).getElementById('dashboard');
  if (forms !== before) return;
  if (!next) return isLost('the app cannot show this page');
  replace(dashboard, next);
  // What a message said was true of the status before, unless it leads somewhere.
  document.querySelector('.flash[data-tone="good"]:not(:has(a))')?.remove();
  isLive();
}

let timer;
async function lookAgain() {
  clearTimeout(timer);
  const dashboard = document.getElementById('dashboard');
  if (!dashboard || document.visibilityState !== 'visible') return;
  if (!sending) await look(dashboard).catch(() => isLost());
  clearTimeout(timer);
  timer = setTimeout(lookAgain, dashboard.dataset.live ? LOOK_EVERY_MS : LOOK_SELDOM_MS);
}

/** Shows the answer of a form. @returns whether the browser goes elsewhere with it */
async function show(answer, form) {
  const text = await answer.text();
  say('', '');
  const isHere = new URL(answer.url).pathname === location.pathname;
  if (answer.redirected && !isHere) location.assign(answer.url);
  else if (answer.status === 404) location.reload();
  else {
    const main = parse(text).querySelector('main');
    const isMistake = main?.querySelector('[aria-invalid]');
    // An error that passes must not take the page away.
    if (answer.ok || isMistake) replace(document.querySelector('main'), main, form);
    else tell(main?.querySelector('.lead')?.textContent ?? 'The app could not do this. Try again.', 'bad');
    document.querySelector(`form[id="${form.id}"] [aria-invalid]`)?.focus();
    return false;
  }
  return true;
}

/** Sends one form at a time: a second click does nothing, as the answer of the first may hold a new cookie. */
addEventListener('submit', async (event) => {
  const form = event.target;
  if (form.method !== 'post') return;
  event.preventDefault();
  if (sending) return;
  sending = true;
  forms++;
  const late = setTimeout(() => isLost('the app has not answered yet'), LATE_ANSWER_MS);
  try {
    const body = new URLSearchParams(new FormData(form));
    const signal = AbortSignal.timeout(LONGEST_FORM_MS);
    const answer = await fetch(form.action, { method: 'POST', body, signal });
    clearTimeout(late);
    sending = await show(answer, form);
  } catch {
    say('', '');
    tell('The app did not answer. Look whether it was done, then try again.', 'bad');
    sending = false;
  } finally {
    clearTimeout(late);
  }
});

// What is mended is no mistake any more.
addEventListener('input', ({ target }) => target.removeAttribute('aria-invalid'));
document.addEventListener('visibilitychange', lookAgain);
addEventListener('pageshow', ({ persisted }) => {
  if (!persisted) return;
  sending = false;
  void lookAgain();
});
addEventListener('offline', () => isLost());
addEventListener('online', () => document.getElementById('dashboard') || say('', ''));
showTimes(document);
setInterval(() => showTimes(document), 1_000);
void lookAgain();
