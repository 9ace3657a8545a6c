import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer } from 'node:tls';
import { afterAll, expect, test } from 'vitest';
import { HttpClient } from '../../src/service/http.ts';
import { AllowedOrigins } from '../../src/service/next-address.ts';
import { ServiceClock } from '../../src/service/service-clock.ts';
import { Transport } from '../../src/service/transport.ts';
import { SELF_SIGNED } from '../support/self-signed.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait-for.ts';
import { failureOf, startTestClient } from './test-client.ts';

/** Longer than a request waits for a connection before it is looked at again, in milliseconds. */
const LATE_MS = 300;

const { parts, newCompany, flightOf } = await startTestClient();

/** The service by TLS: a connection takes its time when the other side does. */
const service = createServer(SELF_SIGNED, (socket) => {
  const onward = connect(Number(new URL(parts.apiUrl).port), '127.0.0.1');
  socket.on('error', () => onward.destroy()).pipe(onward);
  onward.on('error', () => socket.destroy()).pipe(socket);
}).listen(0, '127.0.0.1');
await once(service, 'listening');
const proxy = await startTcpProxy((service.address() as AddressInfo).port);
const http = new HttpClient(undefined, undefined, { usesProxy: false, checksCertificates: false });
afterAll(async () => {
  await http.close();
  service.close();
});

const apiUrl = parts.apiUrl.replace(/^http:\/\/[^/]+/, `https://127.0.0.1:${proxy.port}`);
const outcomes: number[] = [];
const transport = new Transport({
  http,
  clock: new ServiceClock(),
  budget: parts.budget,
  onOutcome: ({ status }) => outcomes.push(status),
});

/** A call whose connection has not come about for long. */
async function callLate() {
  const { company, newClient, journal } = await newCompany();
  let looks = 0;
  let isWanted = true;
  const client = newClient({
    apiUrl,
    transport,
    origins: new AllowedOrigins(apiUrl),
    isWanted: async () => {
      looks++;
      return isWanted;
    },
  });
  proxy.breakOff();
  // Only the call's own connection is held back then.
  await waitFor(() => proxy.open === 0);
  proxy.silence();
  outcomes.length = 0;
  const held = once(proxy.events, 'held');
  const calling = client.listTags().then(
    () => undefined,
    (error: unknown) => error,
  );
  await held;
  const lateAt = performance.now() + LATE_MS;
  await waitFor(() => performance.now() > lateAt);
  const end = () => {
    isWanted = false;
  };
  return { calling, company, journal, end, looks: () => looks };
}

test('what a call was for is over when its connection has come about: nothing is sent', async () => {
  const { calling, company, journal, end } = await callLate();
  end();
  await proxy.pass();
  const error = await failureOf(calling.then((reason) => Promise.reject(reason)));
  expect(error.message).toContain('what it was to be sent for is over');
  expect(await journal()).toEqual([]);
  expect(await flightOf(company)).toEqual({});
  expect(outcomes).toEqual([]);
});

test('a call that is wanted still goes once, on the connection that came late', async () => {
  const { calling, company, journal, looks } = await callLate();
  await proxy.pass();
  expect(await calling).toBeUndefined();
  expect((await journal()).map(({ status }) => status)).toEqual([200]);
  expect(looks()).toBeGreaterThan(1);
  expect(await flightOf(company)).toEqual({});
  expect(outcomes).toEqual([200]);
});
