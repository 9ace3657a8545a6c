import type { ResourceStatus } from '../../sync/status-types.ts';
import { formatCount, formatDuration, formatNumber, instantOf } from './format.ts';
import type { LiveValues } from './live-values.ts';
import { type InstanceOfResource, resourceWords } from './resource-words.ts';

/** How fast a run goes, seen from outside: undefined while nobody has watched it long enough. */
export type RecordsPerSecond = number | undefined;

/** How long the last run took, or how fast the current one is; a run that stands still just now has no pace. */
function paceText(resource: ResourceStatus, pace: RecordsPerSecond): string {
  if (resource.state === 'running') {
    const rounded = Math.round(pace ?? 0);
    return rounded > 0 ? `${formatNumber(rounded)} records/s` : '';
  }
  const [start, end] = [instantOf(resource.started_at), instantOf(resource.finished_at)];
  if (resource.state !== 'idle' || start === undefined || end === undefined || end < start) return '';
  return `took ${formatDuration(end - start)}`;
}

/**
 * The bar's value of its maximum. How many records a company has is known only from an earlier run: the copy
 * then holds more than the current run has brought. Without that the bar shows movement instead of a share, and
 * hides while nothing moves: an empty bar would say that nothing is there.
 */
function bar(resource: ResourceStatus): { value: string | null; max: string } {
  if (resource.state === 'idle') return { value: resource.finished_at ? '1' : '0', max: '1' };
  if (resource.stored > resource.records) {
    return { value: String(resource.records), max: String(resource.stored) };
  }
  return { value: null, max: '1' };
}

function progressText(resource: ResourceStatus): string {
  if (resource.state === 'idle' || resource.stored <= resource.records) {
    return `${formatCount(resource.records, 'record')} on ${formatCount(resource.pages, 'page')}`;
  }
  const records = `${formatNumber(resource.records)} of about ${formatCount(resource.stored, 'record')}`;
  return `${records} on ${formatCount(resource.pages, 'page')}`;
}

/** Everything about a resource's run that is worth a word only when it is not zero. */
function remarks(resource: ResourceStatus): string {
  const parts = [];
  if (resource.deleted > 0) parts.push(`${formatCount(resource.deleted, 'record')} deleted at the service`);
  if (resource.skipped > 0) parts.push(`${formatCount(resource.skipped, 'record')} could not be kept`);
  return parts.join(' · ');
}

/**
 * The changing values of one resource, under its name.
 *
 * @param instance whose state may have stopped what the run was about to do
 * @param now milliseconds since 1970, local clock, which runs go by
 */
export function resourceValues(
  name: string,
  resource: ResourceStatus,
  instance: InstanceOfResource,
  pace: RecordsPerSecond,
  now: number,
): LiveValues {
  const { label, tone, wait } = resourceWords(resource, instance, now);
  const share = bar(resource);
  const texts = { pace: paceText(resource, pace), remarks: remarks(resource) };
  // A company that is disconnected has a copy, but no run that could be anywhere.
  const hasRun = instance.status !== 'disconnected';
  const moves = instance.status === 'active' && resource.state === 'running';
  return {
    text: {
      [`${name}.stored`]: formatNumber(resource.stored),
      [`${name}.state`]: label,
      [`${name}.progress`]: progressText(resource),
      [`${name}.pace`]: texts.pace,
      [`${name}.wait`]: wait,
      [`${name}.remarks`]: texts.remarks,
      [`${name}.error`]: resource.error ?? '',
      [`${name}.ended`]: resource.state === 'failed' ? 'Stopped' : 'Last finished',
    },
    time: { [`${name}.finished`]: resource.finished_at },
    attributes: { [`${name}.bar`]: share, [`${name}.tone`]: { 'data-tone': tone } },
    show: {
      [`${name}.bar`]: hasRun && (share.value !== null || moves),
      [`${name}.progress`]: hasRun,
      [`${name}.pace`]: texts.pace !== '',
      [`${name}.wait`]: wait !== '',
      [`${name}.remarks`]: texts.remarks !== '',
      [`${name}.error`]: resource.error !== null,
      [`${name}.finished`]: resource.finished_at !== null,
    },
  };
}
