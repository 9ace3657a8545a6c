import type { InstanceStatus, ListStatusJson, RunJson } from '../../sync/status-types.ts';
import type { Site, WebResource } from '../web-dependencies.ts';
import { changesText } from './chart-view.ts';
import { errorMessage } from './error-messages.ts';
import { formatCount, formatDuration, formatNumber, instantOf, sentence } from './format.ts';
import type { Tone } from './instance-message.ts';

/** Runs of different lists that begin within this time are one sync, in milliseconds. */
const TOGETHER_MS = 60_000;

const KINDS: Record<RunJson['kind'], string> = { full: 'Sync', check: 'Check' };

const STATES: Record<RunJson['state'], { text: string; tone: Tone }> = {
  waiting: { text: 'Waiting', tone: 'wait' },
  running: { text: 'Copying', tone: 'busy' },
  failed: { text: 'Failed', tone: 'bad' },
  finished: { text: 'Finished', tone: 'good' },
  ended: { text: 'Broken off', tone: 'off' },
};

/** How a run ended, or how far it is. An open one stands where its instance or its list does. */
function outcomeOf(
  { state, finished_at, error_kind }: RunJson,
  whose: InstanceStatus,
  list?: ListStatusJson,
): { text: string; tone: Tone } {
  if (finished_at !== null) return STATES[state];
  if (whose.status === 'paused' || list?.paused) return { text: 'Paused', tone: 'off' };
  if (whose.status === 'needs_reauthorization') return { text: 'Needs authorization', tone: 'warn' };
  if (error_kind !== null) return { text: 'Retrying', tone: 'wait' };
  // The wait for the limit is a part of copying.
  return list?.waiting_for === 'limit' ? STATES.running : STATES[state];
}

/** A row of the operator's table of runs. @param whose the status of its instance, with the list's by name */
export function runRow(run: RunJson, { name }: WebResource, whose: InstanceStatus) {
  const [start, end] = [instantOf(run.started_at) ?? 0, instantOf(run.finished_at)];
  return {
    state: outcomeOf(run, whose, whose.resources[name]).text,
    startedAt: run.started_at,
    finishedAt: run.finished_at,
    took: end === undefined ? '' : formatDuration(end - start),
    counts: [
      { label: 'Records', text: formatNumber(run.records) },
      { label: 'New', text: formatNumber(run.created) },
      { label: 'Changed', text: formatNumber(run.changed) },
      { label: 'Deleted', text: formatNumber(run.deleted) },
      { label: '429s', text: formatNumber(run.refused) },
    ],
    wrong: run.error ?? '',
  };
}

function wrongText({ error_kind, rejected, held }: RunJson, { support }: Site): string {
  const wrong = [
    ...(error_kind === null ? [] : [errorMessage(error_kind, support)]),
    ...(rejected > 0 ? [`${formatCount(rejected, 'record')} cannot be copied.`] : []),
    ...(held > 0 ? [`${formatCount(held, 'deletion')} held.`] : []),
  ];
  return wrong.join(' ');
}

/**
 * The history: one row a sync with its lists, or a check that found something, the newest first.
 *
 * @param runs by the resource's name
 * @param now milliseconds since 1970, local clock
 */
export function historyRows(
  runs: Readonly<Record<string, readonly RunJson[]>>,
  site: Site,
  whose: InstanceStatus,
  now: number,
) {
  const all = site.resources.flatMap((of) => (runs[of.name] ?? []).map((run) => ({ run, of })));
  const startOf = ({ run }: (typeof all)[number]) => instantOf(run.started_at) ?? 0;
  const groups: (typeof all)[] = [];
  for (const one of all.toSorted((a, b) => startOf(b) - startOf(a))) {
    // The nearest first: a list that was read again at once has two runs near those of the others.
    const group = groups.findLast(
      (others) =>
        others.every(({ run, of }) => run.kind === one.run.kind && of !== one.of) &&
        Math.abs(startOf(others.at(-1) ?? one) - startOf(one)) <= TOGETHER_MS,
    );
    if (group === undefined) groups.push([one]);
    else group.push(one);
  }
  return groups.map((group) => {
    const start = Math.min(...group.map(startOf));
    const ends = group.map(({ run }) => instantOf(run.finished_at));
    const took = ends.every((end) => end !== undefined) ? Math.max(...ends) - start : undefined;
    const inOrder = site.resources.flatMap((of) => group.filter((one) => one.of === of));
    const lists = inOrder.map(({ run, of }) => ({
      title: of.title,
      brought: run.finished_at === null ? `${formatCount(run.records, 'record')} so far` : changesText(run),
      outcome: outcomeOf(run, whose, whose.resources[of.name]),
      wrong: wrongText(run, site),
    }));
    const isSame = new Set(lists.map(({ outcome }) => outcome.text)).size === 1;
    return {
      kind: KINDS[group[0]?.run.kind ?? 'full'],
      when: sentence('{ago}', new Date(start).toISOString(), now),
      took: took === undefined ? '' : formatDuration(took),
      /** Of all lists, if it is the same. */
      outcome: isSame ? lists[0]?.outcome : undefined,
      lists,
    };
  });
}
