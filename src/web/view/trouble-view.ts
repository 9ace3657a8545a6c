import type { Trouble } from '../../store/troubles.ts';
import type { InstanceOverview, TroubleJson } from '../../sync/status-types.ts';
import type { WebDependencies, WebResource } from '../web-dependencies.ts';
import { formatCount, instantOf, sentence } from './format.ts';

/** What an operator reads of each kind: on its tile, in the row of a company, and what to do. */
const KINDS: Record<
  Trouble,
  { title: string; noun?: [string, string]; words: string; since?: string; remedy: string; help: string }
> = {
  authorization: {
    title: 'Needs authorization',
    words: 'Needs authorization',
    remedy: 'An administrator of the company has to authorize the app again.',
    help: 'needsreauthorization',
  },
  token: {
    title: 'Token not renewed',
    noun: ['failed refresh', 'failed refreshes'],
    words: 'Its token cannot be renewed',
    since: 'last renewed {ago}',
    remedy: 'The reason stands with its lists; for a paused company, in the log.',
    help: 'refreshtokensindanger',
  },
  failing: {
    title: 'Failing',
    words: 'Fails',
    remedy: 'The reason stands with the list. The app keeps trying.',
    help: 'copystandsstill-listfails',
  },
  held: {
    title: 'Deletions held',
    noun: ['deletion', 'deletions'],
    words: 'Holds',
    remedy: 'Confirm the deletions if the records are gone at the service.',
    help: 'deletionsheld',
  },
  dead_letters: {
    title: 'Dead letters',
    noun: ['dead letter', 'dead letters'],
    words: 'The handler refused',
    remedy: 'Fix the handler or its target, then try again.',
    help: 'handlerlags-deadletters',
  },
  outbox: {
    title: 'Writes to decide',
    noun: ['write', 'writes'],
    words: 'The outbox holds',
    remedy: 'Decide with npm run outbox; of an unknown one, look first whether it arrived.',
    help: 'writeswaitforaperson-outboxlags',
  },
  lagging: {
    title: 'Handler lags',
    words: 'Changes wait for the handler',
    since: 'the oldest is from {ago}',
    remedy: 'Read the handler’s error, or start more workers.',
    help: 'handlerlags-deadletters',
  },
};

/** The tiles above the companies: how many have each trouble. @param filter the one that is chosen */
export function troubleTiles(counts: Record<Trouble, number>, filter: string | undefined) {
  return Object.entries(KINDS).map(([kind, { title }]) => {
    const count = counts[kind as Trouble];
    return { kind, title, count, isChosen: kind === filter, tone: count > 0 ? 'bad' : 'off' };
  });
}

/**
 * The troubles of one company in words, each with what to do.
 *
 * @param now milliseconds since 1970, local clock
 */
export function troubleLines(
  troubles: readonly TroubleJson[],
  resources: readonly WebResource[],
  now: number,
) {
  return troubles.map(({ kind, resource, count, detail, since }) => {
    const { words, noun, since: when = 'began {ago}', remedy, help } = KINDS[kind];
    const list = resources.find(({ name }) => name === resource)?.title ?? resource;
    const what = !count || noun === undefined ? words : `${words}: ${formatCount(count, ...noun)}`;
    const text = list === null ? what : `${list}: ${what}`;
    const begun = instantOf(since) === undefined ? text : `${text}, ${when}`;
    return { text: sentence(begun, since, now), detail: detail ?? '', remedy, help: `/ops/help#${help}` };
  });
}

/** Who paused a company or a list of it, and when: a pause may be forgotten. */
export function pauseLines(
  {
    id,
    status,
    status_since,
    resources,
  }: Pick<InstanceOverview, 'id' | 'status' | 'resources'> & Partial<Pick<InstanceOverview, 'status_since'>>,
  pauses: Awaited<ReturnType<WebDependencies['actions']['pauses']>>,
  all: readonly WebResource[],
  now: number,
) {
  const lists = all.filter(({ name }) => resources[name]?.paused);
  const paused = [...(status === 'paused' ? [null] : []), ...lists];
  return paused.map((list) => {
    const own = pauses.find((pause) => pause.instanceId === id && pause.resource === (list?.name ?? null));
    const what = list === null ? 'Paused' : `${list.title}: paused`;
    const at =
      own === undefined ? (list === null ? (status_since ?? null) : null) : new Date(own.at).toISOString();
    const text = `${what}${own === undefined ? '' : ` by ${own.by}`}${at === null ? '' : ', began {ago}'}`;
    return { text: sentence(text, at, now), detail: '', remedy: 'Ask them, or resume it.', help: '' };
  });
}
