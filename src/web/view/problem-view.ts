import type { ListProblems, ListStatusJson } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { formatNumber } from './format.ts';
import { recordAddress } from './paging.ts';
import type { NameOf } from './record-view.ts';

interface Line {
  what: string;
  why: string;
  /** The id of the record, where there is one in the copy. */
  id?: string;
}

const KINDS: readonly {
  kind: 'dead' | 'rejected';
  title: string;
  text: string;
  linesOf: (problems: ListProblems) => Line[];
  count: (problems: ListProblems, list: ListStatusJson) => number;
}[] = [
  {
    kind: 'dead',
    title: 'Dead letters',
    text: 'The handler could not process these records. They are in the copy. Try them again when the cause is repaired.',
    linesOf: ({ dead_letters }) => dead_letters.map(({ id, error }) => ({ what: id, why: error, id })),
    count: ({ dead_letters }, { handler }) => handler?.dead_letters ?? dead_letters.length,
  },
  {
    kind: 'rejected',
    title: 'Records that cannot be copied',
    text: 'All others are in the copy. Correct these at the service: the next sync copies them.',
    linesOf: ({ rejected_records }) =>
      rejected_records.map(({ reason, excerpt, length }) => {
        const rest = length > excerpt.length ? ` … (${formatNumber(length)} characters)` : '';
        return { what: excerpt + rest, why: reason };
      }),
    count: ({ rejected }) => rejected,
  },
];

/** The problems of an instance, by kind and list. @param nameOf finds the titles of records */
export function problemSections(
  resources: readonly WebResource[],
  statuses: Readonly<Record<string, ListStatusJson>>,
  found: Readonly<Record<string, ListProblems>>,
  instanceAddress: string,
  nameOf: NameOf = () => undefined,
) {
  return KINDS.map(({ kind, title, text, linesOf, count }) => ({
    kind,
    title,
    text,
    lists: resources.flatMap((resource) => {
      const [problems, status] = [found[resource.name], statuses[resource.name]];
      const lines = problems ? linesOf(problems) : [];
      if (!problems || !status || lines.length === 0) return [];
      const base = `${instanceAddress}/${resource.name}`;
      const more = count(problems, status) - lines.length;
      return [
        {
          title: resource.title,
          lines: lines.map((line) => ({
            ...line,
            address: line.id === undefined ? null : recordAddress(base, line.id),
            name: line.id === undefined ? '' : nameOf(resource.name, line.id),
          })),
          more: more > 0 ? `And ${formatNumber(more)} more.` : '',
        },
      ];
    }),
  })).filter(({ lists }) => lists.length > 0);
}
