import type { Owner } from './collection.ts';
import { draftIdentity } from './contact-draft.ts';
import { encodeAll, type JsonBytes } from './json-bytes.ts';
import { Random, seedOf } from './random.ts';
import { EXCERPTS, SUBJECTS } from './words.ts';

const KIND = 2;
const FIRST_CREATED_S = Date.UTC(2024, 0, 8) / 1000;
const CREATED_SPAN_S = 365 * 86_400;
const CHANGED_WITHIN_MS = 30 * 86_400_000;
const FIRST_NUMBER = 10_000;
const NUMBER_SIGN = '#';

const STATUS = encodeAll(['unassigned', 'assigned', 'assigned', 'archived', 'archived', 'archived'] as const);
const SUBJECT = encodeAll(SUBJECTS);
const EXCERPT = encodeAll(EXCERPTS);

/** What conversations refer to: shared things only, as OAuth tokens do not reach private ones (Authentication, 9). */
export interface ConversationParties {
  /** How many contacts the company was made with, and their ids. */
  contacts: { count: number; idAt(index: number): string };
  teammates: readonly { id: string; name: string; email: string }[];
  inboxes: readonly { id: string; name: string }[];
  tags: readonly { id: string; name: string }[];
}

/** What a company's conversations are drawn from. */
export type ConversationLots = ReturnType<typeof encodeParties>;

/** Encodes the parties as conversations show them. */
export function encodeParties(owner: Owner, { contacts, teammates, inboxes, tags }: ConversationParties) {
  return {
    seed: owner.seed,
    contacts,
    assignees: encodeAll(teammates.map(({ id, name, email }) => ({ id, name, email }))),
    inboxes: encodeAll(inboxes),
    tags: encodeAll(tags.map((tag) => ({ ...tag, is_private: false }))),
  };
}

/** A conversation's number in the place that its subject has for one. */
export function numbered(subject: string, number: number): string {
  return subject.replace(NUMBER_SIGN, String(number));
}

/** The same, of the subject's JSON. */
export const numberedBytes: (json: JsonBytes, number: number) => JsonBytes = numbered;

function drawContact(random: Random, { seed, contacts }: ConversationLots, index: number) {
  if (contacts.count === 0) return { contactId: null, ...draftIdentity(seed, index) };
  const chosen = random.int(contacts.count);
  return { contactId: contacts.idAt(chosen), ...draftIdentity(seed, chosen) };
}

function drawFields(random: Random, number: number) {
  return random.chance(30) ? { order_number: number, priority: random.int(4) + 1 } : undefined;
}

/** Draws a conversation. The order of the draws is what makes a conversation the same in every version. */
export function draftConversation(lots: ConversationLots, index: number) {
  const random = new Random(seedOf(lots.seed, KIND, index));
  const number = FIRST_NUMBER + index;
  const createdAt = FIRST_CREATED_S + random.int(CREATED_SPAN_S);
  const status = random.pick(STATUS);
  return {
    number,
    createdAt,
    status,
    assignee: status.value === 'assigned' ? random.pick(lots.assignees) : undefined,
    changedAfterMs: random.int(CHANGED_WITHIN_MS),
    subject: random.pick(SUBJECT),
    contact: drawContact(random, lots, index),
    inbox: random.pick(lots.inboxes),
    tag: random.chance(55) ? random.pick(lots.tags) : undefined,
    fields: drawFields(random, number),
    excerpt: random.pick(EXCERPT),
    isInbound: random.chance(60),
  };
}
