import { ROUTES } from '../../contract/api/api.ts';
import type { InstanceStatus, WriteJson } from '../../sync/status-types.ts';
import { formatCount, formatNumber, sentence } from './format.ts';
import type { Tone } from './instance-message.ts';
import { type NameOf, recordOf } from './record-view.ts';

interface Kind {
  label: string;
  tone: Tone;
  /** What stands before the service's words. */
  why: string;
  again: string;
  end: string;
}

const KINDS: Record<WriteJson['state'], Kind> = {
  unknown: {
    label: 'Unknown',
    tone: 'bad',
    why: 'The service did not say whether it took this: it may have arrived. Look there, then decide. Later writes to the same object wait.',
    again: 'Send again',
    end: 'It arrived',
  },
  refused: { label: 'Refused', tone: 'warn', why: '', again: 'Try again', end: 'Discard' },
  pending: {
    label: 'Retrying',
    tone: 'wait',
    why: 'The app tries again {in}.',
    again: 'Try now',
    end: 'Discard',
  },
  sending: { label: 'Being sent', tone: 'busy', why: '', again: '', end: '' },
};

/**
 * What is to be written at the service, and what became of it; undefined if there is nothing to show.
 *
 * @param writes those that wait for a person or are retried
 * @param nameOf finds the titles of their records
 * @param now milliseconds since 1970
 */
export function outboxView(
  { status, outbox }: InstanceStatus,
  writes: readonly WriteJson[],
  nameOf: NameOf,
  now: number,
) {
  const { pending, sending, refused, unknown, discarded } = outbox;
  const ended = status === 'disconnected' ? discarded : 0;
  if (pending + sending + refused + unknown + ended === 0) return undefined;
  const counts = [
    pending > 0 && `${formatCount(pending, 'write')} ${pending === 1 ? 'waits' : 'wait'}.`,
    sending > 0 && `${formatNumber(sending)} ${sending === 1 ? 'is' : 'are'} being sent.`,
    ended > 0 && `The disconnect discarded ${formatCount(ended, 'write')}.`,
  ];
  const retried = writes.filter(({ state }) => state === 'pending').length;
  const more = refused + unknown + retried - writes.length;
  return {
    counts: counts.filter((text) => text !== false).join(' '),
    lines: writes.map(({ key, operation, object, state, error, next_try_at, has_content }) => {
      const kind = KINDS[state];
      return {
        title: ROUTES.find(([name]) => name === operation)?.[1].summary ?? operation,
        object,
        name:
          recordOf(object)
            .map(([resource, id]) => nameOf(resource, id))
            .at(0) ?? '',
        key,
        label: kind.label,
        tone: kind.tone,
        why: sentence(kind.why, next_try_at, now),
        error,
        again: has_content ? kind.again : '',
        end: kind.end,
      };
    }),
    more: more > 0 ? `And ${formatNumber(more)} more.` : '',
  };
}
