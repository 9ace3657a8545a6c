import { describe, expect, it } from 'vitest';
import type { InstanceStatus, ListStatusJson } from '../../../src/sync/status-types.ts';
import { dashboardValues } from '../../../src/web/view/dashboard-values.ts';
import { instanceMessage } from '../../../src/web/view/instance-message.ts';
import { at, instanceStatus, listStatus, NOW } from '../status-fixtures.ts';

const RESOURCES = [
  { name: 'contacts', title: 'Contacts' },
  { name: 'conversations', title: 'Conversations' },
];

function messageOf(changes: Partial<InstanceStatus>) {
  return instanceMessage(instanceStatus(changes), RESOURCES, NOW);
}

function withContacts(changes: Partial<ListStatusJson>) {
  return messageOf({ resources: { contacts: listStatus(changes), conversations: listStatus() } });
}

describe('instanceMessage', () => {
  it('says when an instance is up to date, and when the next sync comes', () => {
    expect(messageOf({})).toMatchObject({
      tone: 'good',
      label: 'Up to date',
      headline: 'The last sync finished 5 min ago.',
      next: 'The next sync starts by itself in 55 min.',
    });
    expect(messageOf({ next_sync_at: null }).next).toContain('Sync now');
  });

  it('names what is being copied', () => {
    expect(withContacts({ state: 'running' }).headline).toBe('Copying contacts.');
  });

  it.each([
    ['limit', 'Waiting for the limit', 'in 23 s'],
    ['retry', 'Trying again', 'in 23 s'],
    ['turn', 'Waiting', 'by itself'],
  ] as const)('says what a sync waits for: %s', (waiting_for, label, when) => {
    const said = withContacts({ state: 'waiting', waiting_for, waiting_until: at(23_000) });
    expect(said.label).toBe(label);
    expect(said.next).toContain(when);
  });

  it('says that it tries again also while it does, until a page has come', () => {
    const contacts = listStatus({ state: 'running', error_kind: 'timeout' });
    const said = messageOf({ resources: { contacts } });
    expect(said).toMatchObject({ tone: 'wait', label: 'Trying again' });
    expect(said.headline).toBe('The last request for contacts failed.');
    const resources = { contacts, conversations: listStatus({ state: 'running' }) };
    expect(messageOf({ resources }).headline).toBe('Copying conversations.');
  });

  it.each([
    [{ remaining: 0 }, 'Waiting for the limit', 'This minute’s requests are used up.'],
    [{ remaining: 4 }, 'Waiting for the limit', 'This minute’s requests are all but used up.'],
    [{ blocked_until: at(23_000) }, 'Waiting for the service', 'The service asked for a break.'],
    [{}, 'Waiting for the limit', 'The sync waits until the service allows more requests.'],
    [{ remaining: 0, reset_at: at(-1) }, 'Waiting for the limit', 'The sync waits until the service'],
  ] as const)('says of the limit what the budget says: %j', (changes, label, headline) => {
    const contacts = listStatus({
      state: 'waiting',
      waiting_for: 'limit',
      waiting_until: at(23_000),
    });
    const budget = { ...instanceStatus().budget, remaining: 75, ...changes };
    const said = messageOf({ resources: { contacts }, budget });
    expect(said.label).toBe(label);
    expect(said.headline).toContain(headline);
    expect(said.next).toContain('in 23 s');
    const status = instanceStatus({ resources: { contacts }, budget });
    const wait = dashboardValues(status, RESOURCES, {}, NOW).text['contacts.wait'];
    const isAsked = 'blocked_until' in changes;
    expect(wait).toBe(
      `Waiting${isAsked ? ', as the service asked for a break' : ' for the service’s limit'}; goes on in 23 s.`,
    );
  });

  it.each([
    { resources: { contacts: listStatus({ state: 'running' }) } },
    { resources: { contacts: listStatus({ state: 'waiting', waiting_for: 'turn' }) } },
    { resources: { contacts: listStatus({ started_at: null, finished_at: null }) } },
    { next_sync_at: at(-1) },
  ])('says that no worker runs while there is work for one: %j', (changes) => {
    const said = messageOf({ ...changes, workers_missing: true });
    expect(said.headline).toBe('No worker of the app runs, so nothing is copied.');
    expect(said.next).toContain('people who run the app');
    expect(messageOf(changes).headline).not.toContain('worker');
  });

  it('does not mention workers while there is nothing for them to do', () => {
    expect(messageOf({ workers_missing: true }).label).toBe('Up to date');
    expect(messageOf({ workers_missing: true, status: 'paused' }).label).toBe('Paused');
  });

  it('says what to do about records that cannot be kept', () => {
    const problems = { ...listStatus().problems, rejected: 5 };
    expect(withContacts({ problems })).toMatchObject({
      label: 'Up to date',
      next: expect.stringMatching(/correct them at the service\..*The next sync starts by itself/),
    });
  });

  it('says that deletions are held, before anything else about a sync that has finished', () => {
    const handler = { pending: 0, dead_letters: 1, last_error: null, next_try_at: null };
    expect(withContacts({ held_deletions: 60, handler })).toMatchObject({
      tone: 'warn',
      label: 'Deletions held',
      headline: 'The last sync holds back its deletions of contacts. Nothing was deleted.',
    });
  });

  it.each([
    [{ dead_letters: 1 }, 'warn'],
    [{ pending: 3, last_error: 'No leads.' }, 'warn'],
    [{ pending: 3 }, 'good'],
    [{ last_error: 'No leads.' }, 'good'],
  ])('says whether the handler takes what it is given: %j', (changes, tone) => {
    const none = { pending: 0, dead_letters: 0, last_error: null, next_try_at: null };
    const said = withContacts({ handler: { ...none, ...changes } });
    expect(said.tone).toBe(tone);
    expect(said.headline.includes('the handler did not take all contacts')).toBe(tone === 'warn');
  });

  it('says that a sync that has stopped is tried again by itself, and when', () => {
    const failed = { contacts: listStatus({ state: 'failed' }) };
    expect(messageOf({ resources: failed, next_sync_at: at(9 * 60_000 + 1) }).next).toMatch(
      /by itself in 9 min;.*“Sync now”/,
    );
    expect(messageOf({ resources: failed, next_sync_at: null }).next).not.toContain('by itself');
  });

  it('leaves to the notice what the notice says', () => {
    const notice =
      'The service does not accept the refresh token any more. Authorize the app again to go on.';
    expect(messageOf({ status: 'needs_reauthorization', notice }).next).toBe('');
  });

  it('promises no repair where nobody knows that a new authorization is for the same company', () => {
    const ended = { company_id: null, status: 'needs_reauthorization' } as const;
    expect(messageOf(ended).next).toBe('Nothing was deleted. A new authorization begins a copy of its own.');
    const gone = { company_id: null, status: 'disconnected' } as const;
    expect(messageOf(gone)).toMatchObject({
      headline: 'This installation has ended.',
      next: 'What was copied is kept. A new authorization begins a copy of its own.',
    });
    expect(messageOf({ ...gone, has_copy: false }).next).toMatch(
      /^Nothing is kept of .* a copy of its own\.$/,
    );
  });

  it('promises a disconnected company only what there is', () => {
    expect(messageOf({ status: 'disconnected' }).next).toContain('bring the copy up to date');
    expect(messageOf({ status: 'disconnected', has_copy: false }).next).toContain('Nothing is kept');
    const going = { status: 'disconnected', deleting_copy: true } as const;
    expect(messageOf(going).next).toBe(
      'Its copied records are being deleted. Install again to copy them anew.',
    );
    const { text } = dashboardValues(instanceStatus(going), RESOURCES, {}, NOW);
    expect(text['contacts.state']).toBe('Being deleted');
  });

  it('shows a failure once nothing runs any more, and what to do', () => {
    expect(withContacts({ state: 'failed' })).toMatchObject({
      tone: 'bad',
      headline: 'The sync of contacts has stopped.',
    });
    const both = messageOf({
      resources: {
        contacts: listStatus({ state: 'failed' }),
        conversations: listStatus({ state: 'running' }),
      },
    });
    expect(both.label).toBe('Syncing');
  });

  it('does not call a copy up to date that was never finished', () => {
    expect(withContacts({ finished_at: null }).label).toBe('Starting');
    expect(messageOf({ resources: {} }).label).toBe('Starting');
  });

  it.each([
    ['paused', 'Paused', 'Resume'],
    ['needs_reauthorization', 'Needs authorization', 'Authorize again'],
    ['disconnected', 'Disconnected', 'Install again'],
  ] as const)('says what to do when %s', (status, label, advice) => {
    expect(messageOf({ status }).label).toBe(label);
    expect(messageOf({ status }).next).toContain(advice);
  });
});
