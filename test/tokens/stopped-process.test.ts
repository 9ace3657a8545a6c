import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { afterAll, expect, test } from 'vitest';
import { HttpClient } from '../../src/client/http.ts';
import { runningTimeout } from '../../src/client/running-time.ts';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { OAuthClient } from '../../src/tokens/oauth-client.ts';

/** How long a token request may take here, in milliseconds. */
const TIMEOUT_MS = 500;

/** For how long this process stands still, which is longer, in milliseconds. */
const STOPPED_MS = 1_500;

/** A token route that goes on while this thread does not: it answers when that surely stands still. */
const SERVER = `
const { createServer } = require('node:http');
const { parentPort } = require('node:worker_threads');
const server = createServer((request, response) => {
  parentPort.postMessage('asked');
  setTimeout(() => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"access_token":"at-1","refresh_token":"rt-1","token_type":"Bearer"}');
  }, ${TIMEOUT_MS / 2});
}).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

/** As SIGSTOP does, or a frozen container: nothing runs, and time goes on. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function startServer() {
  const worker = new Worker(SERVER, { eval: true });
  const [port] = await once(worker, 'message');
  afterAll(() => worker.terminate());
  return { worker, url: `http://127.0.0.1:${port}` };
}

/** Stands still while the answer comes, and for longer than it is waited for. */
async function standStillWhile<Answer>(worker: Worker, ask: () => Promise<Answer>): Promise<Answer> {
  const asked = once(worker, 'message');
  const answer = ask();
  answer.catch(() => undefined);
  await asked;
  standStill(STOPPED_MS);
  return answer;
}

test('an answer that comes while the process is stopped, for longer than it waits for one, is taken', async () => {
  const { worker, url } = await startServer();
  const client = new OAuthClient({
    authUrl: `${url}/auth`,
    clientId: 'app',
    clientSecret: 'secret',
    redirectUri: 'https://app.example/oauth/callback',
    clock: new ServiceClock(),
    timeoutSeconds: TIMEOUT_MS / 1_000,
  });
  for (const ask of [() => client.refresh('rt-0'), () => client.exchange('code-1', 'state-1')]) {
    expect(await standStillWhile(worker, ask)).toMatchObject({ accessToken: 'at-1', refreshToken: 'rt-1' });
  }
});

test('so is one of the API, as that to whose grant it is', async () => {
  const { worker, url } = await startServer();
  const http = new HttpClient(TIMEOUT_MS);
  afterAll(() => http.close());
  const ask = () => http.send({ method: 'GET', url: new URL(`${url}/api/me`), headers: {} });
  expect((await standStillWhile(worker, ask)).body).toContain('at-1');
});

test('a process that stands still again and again does not wait for ever for an answer of the API', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const http = new HttpClient(TIMEOUT_MS);
  const url = new URL(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  let failure: unknown;
  const connected = once(silent, 'connection');
  const asking = http.send({ method: 'GET', url }).catch((error: unknown) => {
    failure = error;
  });
  const [socket] = await connected;
  await once(socket, 'data');
  let times = 0;
  for (; failure === undefined && times < 6; times++) {
    standStill(STOPPED_MS);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect(times).toBeLessThan(6);
  expect(failure).toMatchObject({ message: expect.stringContaining('did not answer within') });
  await asking;
  await http.close();
  silent.close();
});

test('a limit of time is over after the time in which the process ran, and not before it had a moment to read', async () => {
  const { signal } = runningTimeout(TIMEOUT_MS);
  standStill(STOPPED_MS);
  // What was due meanwhile has had its turn.
  await new Promise((resolve) => setTimeout(resolve, 1));
  expect(signal.aborted).toBe(false);
  await once(signal, 'abort');
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' });
});

test('a limit of time that is ended is never over', async () => {
  const ended = runningTimeout(10);
  ended.end();
  const other = runningTimeout(50);
  await once(other.signal, 'abort');
  expect(ended.signal.aborted).toBe(false);
});
