import type { InstanceStatus, ListStatusJson, RunJson } from '../../sync/status-types.ts';
import type { Site, WebResource } from '../web-dependencies.ts';
import { errorMessage } from './error-messages.ts';
import { formatDuration, formatInstant, formatNumber, instantOf } from './format.ts';

/** Runs in the chart. */
const DRAWN = 20;

/** In units of the SVG. */
const BAR = { width: 14, gap: 6, height: 90 } as const;

const CHANGES = ['created', 'changed', 'deleted'] as const;
const TONES = { created: 'good', changed: 'busy', deleted: 'bad' } as const;

const STATES: Record<RunJson['state'], string> = {
  waiting: 'Waiting',
  running: 'Copying',
  failed: 'Failed',
  finished: 'Finished',
  ended: 'Broken off',
};

/** What became of a run, or what it is at. An open one stands where its instance or its list does. */
function outcomeOf(
  { state, finished_at, error_kind }: RunJson,
  whose: InstanceStatus,
  list?: ListStatusJson,
) {
  if (finished_at !== null) return STATES[state];
  if (whose.status === 'paused' || list?.paused) return 'Paused';
  if (whose.status === 'needs_reauthorization') return 'Needs authorization';
  return error_kind === null ? STATES[state] : 'Retrying';
}

/** A row of the table of runs. @param whose the status of its instance, with the list's by name */
export function runRow(run: RunJson, { name, title }: WebResource, site: Site, whose: InstanceStatus) {
  const [start, end] = [instantOf(run.started_at) ?? 0, instantOf(run.finished_at)];
  const wrong = [
    ...(run.error_kind === null ? [] : [errorMessage(run.error_kind, site.support)]),
    ...(run.rejected > 0 ? [`${formatNumber(run.rejected)} records cannot be copied.`] : []),
    ...(run.held > 0 ? [`${formatNumber(run.held)} deletions held.`] : []),
  ];
  return {
    list: title,
    state: outcomeOf(run, whose, whose.resources[name]),
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
    wrong: wrong.join(' '),
  };
}

/**
 * The bars of the last runs, the oldest first: new, changed and deleted records. Heights are square roots, so that small
 * runs show beside the first one.
 */
export function runBars(runs: readonly RunJson[]) {
  const drawn = runs.slice(0, DRAWN).reverse();
  const sumOf = (run: RunJson) => CHANGES.reduce((sum, kind) => sum + run[kind], 0);
  const most = Math.max(1, ...drawn.map(sumOf));
  const bars = drawn.map((run, at) => {
    const sum = sumOf(run);
    const height = BAR.height * Math.sqrt(sum / most);
    let y: number = BAR.height;
    const parts = CHANGES.filter((kind) => run[kind] > 0).map((kind) => {
      const part = (height * run[kind]) / sum;
      y -= part;
      return { tone: TONES[kind], y: y.toFixed(1), height: part.toFixed(1) };
    });
    const title = `${formatInstant(run.started_at)}: ${CHANGES.map((kind) => `${formatNumber(run[kind])} ${kind}`).join(', ')}`;
    return { x: (DRAWN - drawn.length + at) * (BAR.width + BAR.gap), parts, title };
  });
  return { bars, width: DRAWN * (BAR.width + BAR.gap), height: BAR.height, barWidth: BAR.width };
}
