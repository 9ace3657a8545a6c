import type { WebResource } from '../web-dependencies.ts';
import type { LiveValues } from './live-values.ts';

/**
 * What an open page shows while the app cannot read what it shows otherwise: that, and none of what changes by the
 * second as if it still did. What was in the copy stays.
 */
export function troubleValues(resources: readonly WebResource[]): LiveValues {
  const values: LiveValues = {
    text: {
      'state.label': 'Out of order',
      'state.headline': 'The app cannot reach its own store, so nothing new is copied.',
      'state.next':
        'Nothing is lost, and it goes on by itself when that is over. If it stays, tell the people who run the app.',
      'budget.remaining': '–',
      'budget.limit': 'not known now',
      'budget.spoken': 'Not known now',
      'budget.window': '',
    },
    time: {},
    attributes: { 'state.tone': { 'data-tone': 'bad' }, 'budget.arc': { visibility: 'hidden' } },
    show: {
      'state.next': true,
      notice: false,
      'action.sync': false,
      'action.retry': false,
      'budget.burst': false,
    },
  };
  for (const { name } of resources) {
    values.text[`${name}.state`] = 'Not known';
    values.attributes[`${name}.tone`] = { 'data-tone': 'off' };
    for (const part of ['bar', 'pace', 'wait']) values.show[`${name}.${part}`] = false;
  }
  return values;
}
