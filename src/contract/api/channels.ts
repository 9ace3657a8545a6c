import { z } from 'zod';
import { id, links, nonBlank, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

/** Kinds of channels (our choice: the specification names none). */
const CHANNEL_TYPES = [
  'custom',
  'application',
  'email',
  'smtp',
  'imap',
  'gmail',
  'office365',
  'sms',
  'voice',
  'whatsapp',
  'chat',
  'form',
] as const;

/** A channel: where messages of an inbox come from and go to. */
export const channel = z.looseObject({
  _links: links,
  id,
  name: z.string(),
  type: z.string(),
  address: z.string().nullable(),
  send_as: z.string().nullable(),
  settings: z.record(z.string(), z.unknown()),
  inbox_id: id,
  is_private: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp,
});

/** A new channel; without a name it is called by its address or its type. */
const newChannel = z.looseObject({
  type: z.enum(CHANNEL_TYPES),
  name: nonBlank.optional(),
  address: z.string().nullable().optional(),
  send_as: z.string().nullable().optional(),
  settings: z.record(z.string(), z.unknown()).optional(),
});

export const channelsRoutes = defineRoutes({
  listChannels: {
    method: 'GET',
    path: '/channels',
    summary: 'Lists channels',
    source: 'choice',
    list: true,
    answer: channel,
  },
  getChannel: {
    method: 'GET',
    path: '/channels/:channel_id',
    summary: 'Fetches one channel',
    source: 'choice',
    answer: channel,
  },
  listInboxChannels: {
    method: 'GET',
    path: '/inboxes/:inbox_id/channels',
    summary: 'Lists the channels of an inbox',
    source: 'choice',
    list: true,
    answer: channel,
  },
  createChannel: {
    method: 'POST',
    path: '/inboxes/:inbox_id/channels',
    summary: 'Creates a channel in an inbox',
    source: 'specified',
    body: newChannel,
    status: 201,
    answer: channel,
    guard: { guard: 'resource', by: [':inbox_id', 'channel type'] },
  },
});
