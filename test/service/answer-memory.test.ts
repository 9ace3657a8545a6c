import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AnswerMemory } from '../../src/service/answer-memory.ts';
import { HttpClient } from '../../src/service/http.ts';

const MEGABYTE = 1024 * 1024;
const LARGE = Buffer.alloc(MEGABYTE, ' ');

/** Answers to `/open/…` end when they are told to; others at once. */
const open = new Map<string, ServerResponse>();
let server: Server;
let origin: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const [, kind, name = ''] = request.url?.split('/') ?? [];
    if (kind === 'small') return response.end('{}');
    if (kind !== 'unannounced') response.setHeader('content-length', LARGE.length);
    response.write(LARGE.subarray(1));
    if (kind === 'large') return response.end(' ');
    open.set(name, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => server.close().closeAllConnections());

/** A client that has room for so many bytes of large answers; `come` says which have been read, in their order. */
function newClient(large: number, timeoutMs?: number) {
  const memory = new AnswerMemory({ large, all: 2 * large });
  const http = new HttpClient(timeoutMs, memory);
  afterAll(() => http.close());
  const come: string[] = [];
  const ask = (path: string, signal?: AbortSignal) =>
    http.send({ method: 'GET', url: new URL(`${origin}/${path}`) }, signal).then((answer) => {
      come.push(path);
      return answer;
    });
  /** By then whatever can be read has been. */
  const settle = async () => {
    for (let times = 0; times < 20; times++)
      await http.send({ method: 'GET', url: new URL(`${origin}/small`) });
  };
  return { memory, ask, come, settle };
}

test('a large answer waits until there is room for all of it, and small ones do not', async () => {
  const { ask, come, settle } = newClient(1.5 * MEGABYTE);
  const first = ask('open/first');
  await settle();
  const second = ask('large/second');
  await settle();
  const third = ask('large/third');
  await settle();
  expect(come).toEqual([]);
  await ask('small/fourth');
  open.get('first')?.end(' ');
  expect((await second).bytes.length).toBe(MEGABYTE);
  await Promise.all([first, third]);
  expect(come).toEqual(['small/fourth', 'open/first', 'large/second', 'large/third']);
});

test('what does not say how long it is may come to 32 MB, until it has ended', async () => {
  const { ask, come, settle } = newClient(32.5 * MEGABYTE);
  const first = ask('unannounced/unsure');
  await settle();
  const second = ask('large/second');
  await settle();
  expect(come).toEqual([]);
  open.get('unsure')?.end(' ');
  await Promise.all([first, second]);
  expect(come).toEqual(['unannounced/unsure', 'large/second']);
});

test('one that is broken off gives its room to the next, and one that waits ends at once', async () => {
  const { ask, come, settle } = newClient(1.5 * MEGABYTE);
  const [stop, stopWaiting] = [new AbortController(), new AbortController()];
  const first = ask('open/given-up', stop.signal);
  await settle();
  const waiting = ask('large/second', stopWaiting.signal);
  const last = ask('large/last');
  await settle();
  stopWaiting.abort();
  await expect(waiting).rejects.toThrow('The request was broken off.');
  expect(come).toEqual([]);
  stop.abort();
  await expect(first).rejects.toThrow('The request was broken off.');
  await last;
});

test('an answer that gets no room in time says that this was the reason', async () => {
  const { memory, ask } = newClient(1.5 * MEGABYTE, 300);
  memory.take(MEGABYTE);
  const answer = ask('large/late');
  await expect(answer).rejects.toMatchObject({ remedy: 'wait', noRoom: true });
  await expect(answer).rejects.toThrow('there was no room for another one');
  memory.give(MEGABYTE);
  expect((await ask('large/next')).bytes.length).toBe(MEGABYTE);
});

test('an answer that got its room, and then does not end, is the service’s failure', async () => {
  const { memory, ask, settle } = newClient(1.5 * MEGABYTE, 2_000);
  memory.take(MEGABYTE);
  const answer = ask('open/late');
  answer.catch(() => undefined);
  await settle();
  memory.give(MEGABYTE);
  await expect(answer).rejects.toMatchObject({ remedy: 'wait', noRoom: false });
  await expect(answer).rejects.toThrow('did not answer within');
});

test('when one that wants much gives up, those behind it that want less have room', async () => {
  const { memory } = newClient(3 * MEGABYTE);
  memory.take(MEGABYTE);
  const much = { bytes: 3 * MEGABYTE, goOn: () => expect.unreachable() };
  expect(memory.enter(much)).toBe(false);
  const gone = Promise.withResolvers<void>();
  expect(memory.enter({ bytes: MEGABYTE, goOn: gone.resolve })).toBe(false);
  memory.leave(much);
  await gone.promise;
});

test('nothing stays counted of what has been read', async () => {
  const { memory, ask } = newClient(MEGABYTE);
  for (let times = 0; times < 5; times++) await ask('large/one');
  await expect(ask('open/two', AbortSignal.timeout(100))).rejects.toThrow('broken off');
  expect(memory.bytes).toBe(0);
});
