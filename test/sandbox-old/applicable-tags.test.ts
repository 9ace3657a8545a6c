import { expect, test } from 'vitest';
import { misfit } from '../../src/sandbox/api/messaging.ts';

const sharedInbox = { id: 'inb_shared', is_private: false, teammate_id: null };
const annsInbox = { id: 'inb_ann', is_private: true, teammate_id: 'tea_ann' };
const sharedTag = { id: 'tag_shared', is_private: false };
const annsTag = { id: 'tag_ann', is_private: true, teammate_id: 'tea_ann' };
const bobsTag = { id: 'tag_bob', is_private: true, teammate_id: 'tea_bob' };

test('shared tags are for shared inboxes, private ones for the inbox of the same teammate', () => {
  expect(misfit(sharedTag, sharedInbox)).toBeUndefined();
  expect(misfit(annsTag, annsInbox)).toBeUndefined();
  expect(misfit(annsTag, sharedInbox)).toContain('tag_ann is private');
  expect(misfit(bobsTag, annsInbox)).toContain('tag_bob is not a tag of the teammate');
  expect(misfit(sharedTag, annsInbox)).toContain('tag_shared is not a tag of the teammate');
});
