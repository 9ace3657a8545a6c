import { expect, test } from 'vitest';
import type { BenchCompany } from '../support/bench-sandbox.ts';
import type { Contender, Track } from './contender.ts';
import type { Counted } from './journal-counts.ts';
import { Killer } from './killer.ts';
import { measureAll, type Taken } from './measure.ts';

const WINDOW_MS = 6_000;
const START = 1_000_000;

const grant = { accessToken: '', refreshToken: '', accessExpiresAt: 0 };

function track(id: string, openForMs: number): Track {
  const company: BenchCompany = { id, name: id, teammates: [], api_tokens: [] };
  return { company, grant, openForMs };
}

class Idle implements Contender {
  readonly name = 'idle';
  readonly label = 'idle';
  readonly isOurs = false;
  readonly tracks: readonly Track[];
  kills = 0;

  constructor(...tracks: Track[]) {
    this.tracks = tracks;
  }

  async prepare() {}
  async go() {}
  async killAndRestart() {
    this.kills += 1;
  }
  cpuMs() {
    return 0;
  }
  async end() {}
}

function requests(
  company: string,
  from: number,
  count: number,
  everyMs: number,
  more: Partial<Counted> = {},
) {
  return Array.from({ length: count }, (_, at): Counted => {
    const request = { path: '/contacts', status: 200, company_id: company, application: 'app' };
    return { ...request, at: START + from + at * everyMs, duration_ms: 40, ...more };
  });
}

function taken(rows: Counted[], contender: Contender, over: Partial<Taken> = {}): Taken {
  return {
    condition: { name: 'calm', title: 'calm', latencyMs: 40 },
    contenders: [contender],
    rows: rows.toSorted((one, other) => one.at - other.at),
    cpuMs: [60],
    startedAt: START,
    loop: { companyId: 'loop', perSecondAlone: 50, isBeside: false },
    othersId: 'other',
    windowMs: WINDOW_MS,
    windows: 2,
    limit: 120,
    ...over,
  };
}

const opener = { application: 'other', path: '/me' };

test('complete windows are counted: the one that is open when the work begins is not, nor what follows them', () => {
  const rows = [
    ...requests('a', -2_000, 1, 1, opener),
    ...requests('a', 0, 119, 20),
    ...requests('a', 4_000, 120, 20),
    ...requests('a', 10_000, 60, 20),
    ...requests('a', 16_000, 120, 20),
  ];
  const [line] = measureAll(taken(rows, new Idle(track('a', 2_000)))).lines;
  expect(line).toMatchObject({
    share: 0.75,
    refused: 0,
    pages: 419,
    windowStarts: [-2_000, 4_000, 10_000, 16_000],
  });
  expect(line?.cpuMsPerPage).toBeCloseTo(60 / 419);
});

test('what another application is served is not ours to have; its refusals are not ours', () => {
  const rows = [
    ...requests('a', -2_000, 1, 1, opener),
    ...requests('a', 4_000, 100, 20),
    ...requests('a', 4_010, 20, 20, opener),
    ...requests('a', 8_000, 3, 20, { ...opener, status: 429 }),
    ...requests('a', 8_500, 3, 20, { status: 429 }),
    ...requests('a', 10_000, 110, 20),
  ];
  const [line] = measureAll(taken(rows, new Idle(track('a', 2_000)))).lines;
  expect(line?.share).toBeCloseTo(210 / 220);
  expect(line?.refused).toBe(3);
  expect(line?.othersPerWindow).toEqual({ served: 10, refused: 1.5 });
  // From the start to the end of the complete windows: 16 s.
  expect(line?.refusedPerWindow).toBeCloseTo(3 / (16 / 6));
});

test('each contender is killed once, in the middle of the window that is meant', async () => {
  const one = new Idle(track('a', 2_000));
  const two = new Idle(track('x', 4_000), track('b', 2_000), track('y', 0));
  const killer = new Killer([one, two], WINDOW_MS, 120);
  const rows = [
    ...requests('a', 0, 50, 20),
    ...requests('a', 6_000, 10, 20),
    ...requests('x', 6_000, 60, 20),
  ];
  killer.look(rows);
  expect([one.kills, two.kills]).toEqual([0, 0]);
  rows.push(...requests('a', 6_200, 20, 20), ...requests('b', 0, 100, 20), ...requests('b', 6_000, 30, 20));
  killer.look(rows);
  killer.look(rows);
  expect([one.kills, two.kills]).toEqual([1, 1]);
  await killer.done();
});
