import { describe, expect, it } from 'vitest';
import { CREDENTIALS_REFUSED } from '../../../src/auth/tokens.ts';
import type { ServiceClient } from '../../../src/client/calls/call-types.ts';
import type { Instance } from '../../../src/store/instances.ts';
import { callOwnLogic } from '../../../src/sync/own-logic-call.ts';
import { atWorkText } from '../../../src/sync/own-logic-parking.ts';
import type { SliceContext } from '../../../src/sync/slice-parts.ts';
import type { InstanceStatus, ResourceStatus } from '../../../src/sync/status-types.ts';
import { instanceWords } from '../../../src/web/view/instance-words.ts';
import { resourceWords } from '../../../src/web/view/resource-words.ts';
import { at, instanceStatus, NOW, resourceStatus } from '../status-fixtures.ts';

const RESOURCES = [
  { name: 'contacts', title: 'Contacts' },
  { name: 'conversations', title: 'Conversations' },
];

function words(changes: Partial<InstanceStatus>) {
  return instanceWords(instanceStatus(changes), RESOURCES, NOW);
}

function withContacts(changes: Partial<ResourceStatus>) {
  return words({ resources: { contacts: resourceStatus(changes), conversations: resourceStatus() } });
}

describe('instanceWords', () => {
  it('says when an instance is up to date, and when the next sync comes', () => {
    expect(words({})).toMatchObject({
      tone: 'good',
      label: 'Up to date',
      headline: 'The last sync finished 5 min ago.',
      next: 'The next sync starts by itself in 55 min.',
    });
    expect(words({ next_sync_at: null }).next).toContain('Sync now');
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

  it('does not blame the service for what the app’s own logic did', async () => {
    const instance = { id: 'ins_1', company_id: null } as Instance;
    const thrown = await callOwnLogic(
      {
        ownLogic: async () => {
          throw new Error('no such table: leads');
        },
        ownLogicTimeoutMs: 60_000,
        serviceFor: () => ({}) as ServiceClient,
      },
      { instance, resource: 'contacts' },
      { created: [{ id: 'crd_1' }] },
      {} as SliceContext,
    ).catch((error: Error) => error.message);
    const retry = { state: 'waiting', waiting_for: 'retry', waiting_until: at(23_000) } as const;
    const said = withContacts({ ...retry, error: thrown ?? null });
    expect(said.headline).toBe('The app’s own logic failed on contacts.');
    expect(said.next).toMatch(/in 23 s.*people who run the app/);
    const service = withContacts({ ...retry, error: 'The service answered 503.' });
    expect(service.headline).toContain('The service did not answer');
  });

  it('says that the app’s own logic is at work, where nothing else is waited for', () => {
    const atWork = resourceStatus({
      state: 'waiting',
      waiting_for: 'limit',
      error: atWorkText('contacts', NOW),
    });
    const said = words({ resources: { contacts: atWork, conversations: resourceStatus() } });
    expect(said).toMatchObject({
      label: 'Own logic at work',
      headline: 'The app’s own logic is at work on contacts.',
    });
    expect(resourceWords(atWork, instanceStatus(), NOW)).toMatchObject({
      label: 'Waiting',
      wait: 'Waiting for the app’s own logic.',
    });
    const waiting = resourceStatus({ state: 'waiting', waiting_for: 'limit', waiting_until: at(23_000) });
    const both = words({ resources: { contacts: atWork, conversations: waiting } });
    expect(both.label).toBe('Waiting for the limit');
  });

  it('says that it is the service that has trouble and asked to wait, where it did', () => {
    const error = 'The service has trouble (503: maintenance). It asked to wait before the next try.';
    const said = withContacts({ state: 'waiting', waiting_for: 'retry', waiting_until: at(23_000), error });
    expect(said).toMatchObject({
      label: 'Waiting for the service',
      headline: 'The service has trouble, and asked to wait.',
      next: 'The app tries again by itself, in 23 s. There is nothing to do.',
    });
  });

  it('says that a new authorization may help where the service refuses to renew the access', () => {
    const error = "The service refuses to renew the app's access (403).";
    const said = withContacts({
      state: 'waiting',
      waiting_for: 'retry',
      waiting_until: at(23_000),
      error,
    });
    expect(said.headline).toBe('The service refuses to renew the app’s access.');
    expect(said.next).toMatch(/tries again by itself, in 23 s\..*hours.*[Aa]uthoriz/);
    expect(said.next).not.toContain('nothing to do');
    expect(withContacts({ state: 'failed', error }).next).toMatch(/hours.*[Aa]uthoriz/);
  });

  it('leaves the app’s credentials to the people who run it, whatever else a list has stopped for', () => {
    const contacts = resourceStatus({ state: 'failed', error: CREDENTIALS_REFUSED });
    const conversations = resourceStatus({
      state: 'failed',
      error: 'The service refused the request (403).',
    });
    for (const resources of [{ contacts }, { contacts, conversations }, { conversations, contacts }]) {
      const said = words({ resources, next_sync_at: at(9 * 60_000) });
      expect(said.headline).toBe('The service does not accept the credentials of the app itself.');
      expect(said.next).toMatch(/people who run the app.*by itself.*nothing for you to do/);
      expect(said.next).not.toMatch(/[Aa]uthoriz|Sync now/);
    }
  });

  it('does not blame the service for the app’s own trouble', () => {
    const error = 'The app itself had trouble: Redis could not be reached.';
    const said = withContacts({ state: 'waiting', waiting_for: 'retry', waiting_until: at(23_000), error });
    expect(said.headline).toBe('The app itself has trouble.');
    expect(said.next).toMatch(/in 23 s.*people who run the app/);
    expect(withContacts({ state: 'failed', error }).next).toContain('people who run the app');
  });

  it('says that it tries again also while it does, until a page has come', () => {
    const error = 'The service has trouble: no answer within 30 s.';
    expect(withContacts({ state: 'running', error })).toMatchObject({
      label: 'Trying again',
      headline: 'The service did not answer as it should.',
    });
    const resources = {
      contacts: resourceStatus({ state: 'running', error }),
      conversations: resourceStatus({ state: 'running' }),
    };
    expect(words({ resources }).headline).toBe('Copying conversations.');
  });

  it.each([
    [{ remaining: 0 }, 'Waiting for the limit', 'This minute’s requests are used up.'],
    [{ remaining: 4 }, 'Waiting for the limit', 'This minute’s requests are all but used up.'],
    [{ blocked_until: at(23_000) }, 'Waiting for the service', 'The service asked for a break.'],
    [{}, 'Waiting for the limit', 'The sync waits until the service allows more requests.'],
    [{ remaining: 0, reset_at: at(-1) }, 'Waiting for the limit', 'The sync waits until the service'],
  ] as const)('says of the limit what the budget says: %j', (changes, label, headline) => {
    const contacts = resourceStatus({
      state: 'waiting',
      waiting_for: 'limit',
      waiting_until: at(23_000),
    });
    const budget = { ...instanceStatus().budget, remaining: 75, ...changes };
    const said = words({ resources: { contacts }, budget });
    expect(said.label).toBe(label);
    expect(said.headline).toContain(headline);
    expect(said.next).toContain('in 23 s');
    const { wait } = resourceWords(contacts, { ...instanceStatus(), budget }, NOW);
    const isAsked = 'blocked_until' in changes;
    expect(wait).toBe(
      `Waiting${isAsked ? ', as the service asked for a break' : ' for the service’s limit'}; goes on in 23 s.`,
    );
  });

  it.each([
    { resources: { contacts: resourceStatus({ state: 'running' }) } },
    { resources: { contacts: resourceStatus({ state: 'waiting', waiting_for: 'turn' }) } },
    { resources: { contacts: resourceStatus({ started_at: null, finished_at: null }) } },
    { next_sync_at: at(-1) },
  ])('says that no worker runs while there is work for one: %j', (changes) => {
    const said = words({ ...changes, workers_missing: true });
    expect(said.headline).toBe('No worker of the app runs, so nothing is copied.');
    expect(said.next).toContain('people who run the app');
    expect(words(changes).headline).not.toContain('worker');
  });

  it('does not mention workers while there is nothing for them to do', () => {
    expect(words({ workers_missing: true }).label).toBe('Up to date');
    expect(words({ workers_missing: true, status: 'paused' }).label).toBe('Paused');
  });

  it.each([
    ['The service refused the request (403: No).', /Authorize the app again.*people who run the app/],
    ['The service refused the request (404).', /tell the people who run the app/],
    ['The service answered with a redirect (302), which is not followed.', /tell the people who run/],
    ['The service has trouble (503). Tried 7 times; it will be tried again by itself.', /^What went wrong/],
  ])('says who can do something about a sync that has stopped: %s', (error, advice) => {
    expect(withContacts({ state: 'failed', error }).next).toMatch(advice);
  });

  it('says whose task it is that something could not be kept', () => {
    const set_aside = { ...resourceStatus().set_aside, quarantined: 5 };
    expect(withContacts({ set_aside })).toMatchObject({
      label: 'Up to date',
      next: expect.stringMatching(/mended at the service\. The next sync starts by itself/),
    });
  });

  it('says that a sync that has stopped is tried again by itself, and when', () => {
    const failed = { contacts: resourceStatus({ state: 'failed' }) };
    expect(words({ resources: failed, next_sync_at: at(9 * 60_000 + 1) }).next).toMatch(
      /by itself in 9 min;.*“Sync now”/,
    );
    expect(words({ resources: failed, next_sync_at: null }).next).not.toContain('by itself');
  });

  it('leaves to the notice what the notice says', () => {
    const notice =
      'The service does not accept the refresh token any more. Authorize the app again to go on.';
    expect(words({ status: 'needs_reauthorization', notice }).next).toBe('');
  });

  it('promises no repair where nobody knows that a new authorization is for the same company', () => {
    const ended = { company_id: null, status: 'needs_reauthorization' } as const;
    expect(words(ended).next).toBe('Nothing was deleted. A new authorization begins a copy of its own.');
    const gone = { company_id: null, status: 'disconnected' } as const;
    expect(words(gone)).toMatchObject({
      headline: 'This installation has ended.',
      next: 'What was copied is kept. A new authorization begins a copy of its own.',
    });
    expect(words({ ...gone, has_copy: false }).next).toMatch(/^Nothing is kept of .* a copy of its own\.$/);
  });

  it('promises a disconnected company only what there is', () => {
    expect(words({ status: 'disconnected' }).next).toContain('bring the copy up to date');
    expect(words({ status: 'disconnected', has_copy: false }).next).toContain('Nothing is kept');
    const going = { status: 'disconnected', deleting_copy: true } as const;
    expect(words(going).next).toBe('Its copied records are being deleted. Install again to copy them anew.');
    expect(resourceWords(resourceStatus(), instanceStatus(going), NOW).label).toBe('Being deleted');
  });

  it('shows a failure once nothing runs any more, and what to do', () => {
    expect(withContacts({ state: 'failed' })).toMatchObject({
      tone: 'bad',
      headline: 'The sync of contacts has stopped.',
    });
    const both = words({
      resources: {
        contacts: resourceStatus({ state: 'failed' }),
        conversations: resourceStatus({ state: 'running' }),
      },
    });
    expect(both.label).toBe('Syncing');
  });

  it('does not call a copy up to date that was never finished', () => {
    expect(withContacts({ finished_at: null }).label).toBe('Starting');
    expect(words({ resources: {} }).label).toBe('Starting');
  });

  it.each([
    ['paused', 'Paused', 'Resume'],
    ['needs_reauthorization', 'Needs authorization', 'Authorize again'],
    ['disconnected', 'Disconnected', 'Install again'],
  ] as const)('says what to do when %s', (status, label, advice) => {
    expect(words({ status }).label).toBe(label);
    expect(words({ status }).next).toContain(advice);
  });
});
