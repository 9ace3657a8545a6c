import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { beforeAll, describe, expect, it } from 'vitest';
import { type RequestFacts, requestLog } from '../../src/web/request-log.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';
import { type StartedWeb, startWeb } from './start-web.ts';

const seen: RequestFacts[] = [];
let web: StartedWeb;
beforeAll(async () => {
  web = await startWeb({ onRequest: (facts) => seen.push(facts) });
});

/** The facts of the requests that `act` makes; each is told once its connection is done with it. */
async function factsOf(requests: number, act: () => Promise<unknown>): Promise<RequestFacts[]> {
  seen.length = 0;
  await act();
  await waitFor(() => seen.length >= requests, 'the facts of every request');
  return seen.slice();
}

describe('what is measured of a request', () => {
  it('is the route by its pattern, once a request', async () => {
    const { browser, id } = await web.installed('Measured');
    const facts = await factsOf(3, async () => {
      await browser.get(`/instances/${id}`);
      await browser.get(`/instances/${id}/contacts.ndjson`);
      await browser.post(`/instances/${id}/sync`, {}, { follow: false });
    });
    expect(facts.map(({ method, route, status }) => [method, route, status])).toEqual([
      ['GET', '/instances/:id', 200],
      ['GET', '/instances/:id/:resource.ndjson', 200],
      ['POST', '/instances/:id/:action', 303],
    ]);
    for (const { durationMs } of facts) expect(durationMs).toBeGreaterThan(0);
  });

  it('has one name for all assets, and one for all that nobody knows', async () => {
    const facts = await factsOf(4, async () => {
      for (const path of ['/assets/app.css', '/assets/none', '/nowhere', '/wp-admin/x']) {
        await web.browser().get(path);
      }
    });
    expect(facts.map(({ route, status }) => [route, status])).toEqual([
      ['/assets/*', 200],
      ['/assets/*', 404],
      ['other', 404],
      ['other', 404],
    ]);
  });
});

describe('the line of a request', () => {
  const last = () => web.log.lines.findLast(({ route }) => route !== undefined);

  it('is for debugging when machines or open pages ask, and for redirects', async () => {
    const { browser, id } = await web.installed('Quiet');
    const paths = [`/instances/${id}/status`, '/assets/app.css', '/healthz', '/readyz', '/metrics'];
    await factsOf(7, async () => {
      for (const path of [...paths, '/', `/instances/${id}`]) await browser.get(path);
    });
    const levels = (route: string) => {
      const lines = web.log.lines.filter((line) => line.route === route);
      return [...new Set(lines.map(({ level }) => level))];
    };
    const machines = ['/instances/:id/status', '/assets/*', '/healthz', '/readyz', '/metrics'];
    for (const route of [...machines, '/install', '/oauth/callback']) {
      expect(levels(route), route).toEqual(['debug']);
    }
    for (const route of ['/', '/instances/:id']) expect(levels(route), route).toEqual(['info']);
    await factsOf(1, () => browser.get('/', { headers: { 'sec-fetch-dest': 'empty' } }));
    expect(levels('/')).toEqual(['info', 'debug']);
  });

  it('reads as a sentence, and names the instance', async () => {
    await factsOf(1, () => web.browser().get('/instances/ins_quiet'));
    const msg = expect.stringMatching(/^GET \/instances\/:id 404 \d+ ms$/);
    expect(last()).toMatchObject({ instanceId: 'ins_quiet', msg });
  });

  it.each([
    ...['/oauth/callback?code=hush&q=hush', '/oauth/callback%3Fcode=hush', '/hush', '/assets/hush'],
    ...['/instances/ins_log/contacts/hush', '/instances/ins_log/contacts?record=hush', '/instances/hush'],
    ...['/instances/ins_log/hush/of/nobody', '/instances/ins_log%2Fcontacts%252fhush'],
  ])('holds no query, and no id of a record: %s', async (path) => {
    const { browser, id } = await web.installed('Logged');
    await factsOf(1, () => browser.get(path.replace('ins_log', id)));
    expect(last()?.msg).toMatch(/^GET \S+ \d+ \d+ ms$/);
    expect(web.log.text()).not.toContain('hush');
  });

  it('names instance and request as the lines of the workers do', () => {
    const installed = web.log.lines.find(({ msg }) => msg === 'installed');
    expect(installed).toMatchObject({
      instanceId: expect.stringMatching(/^ins_/),
      requestId: expect.any(String),
    });
  });
});

it('an answer that is written after its end is a line of the log, and does not end the process', async () => {
  const log = testLogger();
  const app = express().use(requestLog(log.logger));
  app.get('/', (_req, res) => {
    res.end('the whole');
    res.write('and more');
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  expect(await answer.text()).toBe('the whole');
  expect(log.lines.filter(({ level }) => level === 'error')).toMatchObject([
    { msg: 'an answer could not be written', err: { message: 'write after end' } },
  ]);
  server.close();
});
