import { describe, expect, it } from 'vitest';
import type { InstanceStatus, ListStatusJson } from '../../../src/sync/status-types.ts';
import type { Sentence } from '../../../src/web/view/format.ts';
import { instanceMessage } from '../../../src/web/view/instance-message.ts';
import { at, HANDLER, instanceStatus, listStatus, NOW } from '../status-fixtures.ts';

const resources = ['Contacts', 'Conversations'].map((title) => ({ name: title.toLowerCase(), title }));
const SITE = { name: 'Acme Sync', support: 'help@test.example', resources };

function textOf({ before, moment, after }: Sentence): string {
  return before + (moment?.text ?? '') + after;
}

function messageOf(changes: Partial<InstanceStatus>) {
  const { headline, next, small, ...message } = instanceMessage(instanceStatus(changes), SITE, NOW);
  return { ...message, headline: textOf(headline), next: textOf(next), small: small && textOf(small) };
}

function withContacts(changes: Partial<ListStatusJson>) {
  return messageOf({ resources: { contacts: listStatus(changes), conversations: listStatus() } });
}

describe('instanceMessage', () => {
  it('says when an instance is up to date', () => {
    expect(messageOf({})).toEqual({
      tone: 'good',
      label: 'Up to date',
      headline: 'Everything is copied, and kept up to date.',
      next: 'There is nothing to do.',
      small: null,
      more: null,
    });
  });

  it('takes the wait for the limit as a part of copying, in small print', () => {
    const waiting = { state: 'waiting', waiting_for: 'limit', waiting_until: at(23_000) } as const;
    const budget = { ...instanceStatus().budget, blocked_until: at(23_000) };
    const resources = { contacts: listStatus(waiting), conversations: listStatus({ state: 'running' }) };
    expect(messageOf({ resources })).toMatchObject({
      tone: 'busy',
      label: 'Syncing',
      headline: 'Copying contacts and conversations.',
      small: 'Next requests in 23 s',
    });
    expect(messageOf({ resources, budget }).small).toBe(
      'The service asked for a break: next requests in 23 s',
    );
    expect(withContacts({ state: 'running' }).small).toBeNull();
  });

  it.each([
    ['retry', 'Retrying', 'tries again by itself'],
    ['turn', 'Waiting', 'by itself'],
  ] as const)('says what a sync waits for: %s', (waiting_for, label, when) => {
    const said = withContacts({ state: 'waiting', waiting_for, waiting_until: at(23_000) });
    expect(said.label).toBe(label);
    expect(said.next).toContain(when);
  });

  it.each([
    [{ state: 'running', error_kind: 'timeout' }, 'Retrying', 'wait'],
    [{ state: 'failed', error_kind: 'server_error', failing_since: at(-119_000) }, 'Retrying', 'wait'],
    [{ state: 'failed', error_kind: 'server_error', failing_since: at(-121_000) }, 'Needs attention', 'bad'],
    [{ state: 'failed', error_kind: 'refused', failing_since: at(-1_000) }, 'Needs attention', 'bad'],
    [{ state: 'waiting', waiting_for: 'retry', failing_since: at(-121_000) }, 'Needs attention', 'bad'],
    [{ state: 'running', error_kind: 'timeout', failing_since: at(-121_000) }, 'Needs attention', 'bad'],
  ] as const)('calls a short trouble of the service a retry: %j', (changes, label, tone) => {
    expect(messageOf({ resources: { contacts: listStatus(changes) } })).toMatchObject({ label, tone });
  });

  it('names what is being copied, before a list that is tried again', () => {
    expect(withContacts({ state: 'running' }).headline).toBe('Copying contacts.');
    const contacts = listStatus({ state: 'running', error_kind: 'timeout' });
    const conversations = listStatus({ state: 'running' });
    expect(messageOf({ resources: { contacts, conversations } }).headline).toBe('Copying conversations.');
  });

  it.each([
    { resources: { contacts: listStatus({ state: 'running' }) } },
    { resources: { contacts: listStatus({ state: 'waiting', waiting_for: 'turn' }) } },
    { resources: { contacts: listStatus({ started_at: null, finished_at: null }) } },
    { next_sync_at: at(-1) },
  ])('says that no worker runs while there is work for one: %j', (changes) => {
    const said = messageOf({ ...changes, workers_missing: true });
    expect(said.headline).toBe('The app’s worker is not running, so nothing is copied.');
    expect(said.next).toContain('write to help@test.example');
    expect(messageOf(changes).headline).not.toContain('not running');
  });

  it('does not mention workers while there is nothing for them to do', () => {
    expect(messageOf({ workers_missing: true }).label).toBe('Up to date');
    expect(messageOf({ workers_missing: true, status: 'paused' }).label).toBe('Paused');
  });

  it.each(['store', 'redis'] as const)('says that the app itself is in trouble: %s', (error_kind) => {
    const said = messageOf({ error_kind, error: 'SQLITE_BUSY' });
    expect(said).toMatchObject({ tone: 'bad', label: 'Out of order' });
    expect(said.next).toMatch(/nothing new is copied\. Nothing is lost.*write to help@test\.example/);
  });

  it('names the lists that stand still while others are copied', () => {
    const conversations = listStatus({ state: 'running' });
    const stopped = listStatus({ state: 'failed', error_kind: 'refused', failing_since: at(-200_000) });
    expect(messageOf({ resources: { contacts: stopped, conversations } })).toMatchObject({
      tone: 'warn',
      next: expect.stringContaining('The sync of contacts has stopped: see the reason below.'),
    });
    const paused = listStatus({ paused: true, full_at: null });
    expect(messageOf({ resources: { contacts: paused, conversations } }).next).toContain(
      'The first copy of contacts is paused before its end.',
    );
  });

  it('calls no company up to date whose authorization cannot be renewed', () => {
    const token = { ...instanceStatus().token, failures: 1 };
    expect(messageOf({ token })).toMatchObject({
      tone: 'warn',
      headline: 'The copy is up to date, but the authorization could not be renewed.',
    });
  });

  it('calls no company up to date that has a paused list', () => {
    const paused = listStatus({ paused: true, state: 'failed' });
    expect(withContacts({ paused: true, full_at: null, finished_at: null, stored: 35_534 })).toMatchObject({
      tone: 'warn',
      label: 'Incomplete',
      headline: 'The first copy of contacts is paused before its end.',
    });
    expect(withContacts({ paused: true, state: 'failed' })).toMatchObject({
      tone: 'off',
      label: 'Partly paused',
      headline: 'The copy of contacts is paused. It is complete as of 10 Jun 2025, 11:55 UTC.',
      next: 'Resume below to go on. The other lists are up to date.',
    });
    expect(messageOf({ resources: { contacts: paused } }).headline).toBe('Every list is paused.');
    const failing = listStatus({ handler: { ...HANDLER, dead_letters: 1 } });
    const outbox = { ...instanceStatus().outbox, unknown: 2 };
    const both = { contacts: listStatus({ paused: true }), conversations: failing };
    expect(messageOf({ resources: both }).headline).toBe('1 change could not be handed to Acme Sync.');
    expect(messageOf({ resources: both, outbox }).headline).toBe(
      '2 changes for the service wait for a decision.',
    );
  });

  it('says what to do about records that cannot be kept', () => {
    const problems = { ...listStatus().problems, rejected: 5 };
    expect(withContacts({ problems })).toMatchObject({
      next: '5 records cannot be copied: correct them at the service.',
      more: { path: '#problems-rejected' },
    });
  });

  it('says that deletions are held, before anything else about a sync that has finished', () => {
    expect(withContacts({ held_deletions: 60, handler: { ...HANDLER, dead_letters: 1 } })).toMatchObject({
      tone: 'warn',
      label: 'Deletions held',
      headline: 'The last sync did not find many of the contacts. Nothing was deleted.',
    });
  });

  it.each([
    [{ dead_letters: 1 }, 1],
    [{ pending: 3, last_error: 'No leads.' }, 3],
    [{ pending: 3, dead_letters: 2, last_error: 'No leads.' }, 5],
    [{ pending: 3 }, 0],
    [{ last_error: 'No leads.' }, 0],
  ])('says how many changes the handler cannot take, without a word of it: %j', (changes, count) => {
    const said = withContacts({ handler: { ...HANDLER, ...changes } });
    expect([said.tone, said.more?.path]).toEqual(
      count > 0 ? ['warn', '/settings#developer'] : ['good', undefined],
    );
    if (count > 0)
      expect(said.headline).toMatch(new RegExp(`but ${count} changes? could not be handed to Acme Sync\\.$`));
    expect(JSON.stringify(said)).not.toMatch(/handler|dead letter|outbox/i);
  });

  const DELETING = 'Its copied records are being deleted. Install again to copy them anew.';
  const UNKNOWN = 'A new authorization begins a copy of its own.';
  it.each<[Partial<InstanceStatus>, string, string]>([
    [{ status: 'paused' }, 'Paused', 'Resume'],
    [{ status: 'needs_reauthorization' }, 'Needs authorization', 'Authorize it again'],
    [
      { status: 'needs_reauthorization', company_id: null },
      'Needs authorization',
      `Nothing was deleted. ${UNKNOWN}`,
    ],
    [{ status: 'disconnected' }, 'Disconnected', 'Install again to bring the copy up to date'],
    [{ status: 'disconnected', has_copy: false }, 'Disconnected', 'Its records are deleted'],
    [{ status: 'disconnected', deleting_copy: true }, 'Disconnected', DELETING],
    [{ status: 'disconnected', company_id: null }, 'has ended', `The copy is kept. ${UNKNOWN}`],
  ])('promises only what there is, and says what to do: %j', (changes, state, next) => {
    const said = messageOf(changes);
    expect(`${said.label}. ${said.headline}`).toContain(state);
    expect(said.next).toContain(next);
  });

  it('does not call a copy up to date that was never finished', () => {
    expect(withContacts({ finished_at: null }).label).toBe('Starting');
    expect(messageOf({ resources: {} }).label).toBe('Starting');
  });
});
