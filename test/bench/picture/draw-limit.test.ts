import { expect, test } from 'vitest';
import type { Line, Measured } from '../limit/measure.ts';
import { drawLimit } from './draw-limit.ts';

function line(over: Partial<Line>): Line {
  return {
    name: 'peer',
    label: 'a peer',
    isOurs: false,
    openForMs: 2_000,
    share: 1,
    refused: 0,
    refusedPerWindow: 0,
    timedMs: undefined,
    idealTimedMs: 0,
    pages: 0,
    othersPerWindow: { served: 0, refused: 0 },
    cpuMsPerPage: 0,
    requests: [],
    windowStarts: [],
    ...over,
  };
}

function measured(...lines: Line[]): Measured {
  const condition = { name: 'calm', title: 'calm', latencyMs: 40 };
  return { condition, windowMs: 6_000, windows: 5, limit: 120, loopPerSecond: 50, lines };
}

const ours = [0, 2_000, 4_000].map((openForMs) =>
  line({ name: 'app', label: 'this app', isOurs: true, openForMs, pages: openForMs + 1 }),
);

test('everybody has a row, ours the one that stands as the peers do, with pages and refusals', () => {
  const refused = line({ label: 'limiter <of> a queue', pages: 240, refused: 62 });
  const svg = drawLimit([{ title: 'Calm', measured: measured(...ours, refused) }]);
  expect(svg.match(/>this app</g)).toHaveLength(1);
  expect(svg).toContain('<tspan>0 × 429</tspan> · 2001 pages');
  expect(svg).toContain('62 × 429</tspan> · 240 pages');
  expect(svg).toContain('limiter &lt;of&gt; a queue');
});

test('refusals are marked where they were, those of one moment once', () => {
  const requests: Line['requests'] = [
    [100, 200],
    [1_010, 429],
    [1_020, 429],
    [9_000, 429],
    [99_000, 429],
  ];
  const svg = drawLimit([{ title: 'Calm', measured: measured(...ours, line({ requests, refused: 4 })) }]);
  // One more is in the legend.
  expect(svg.match(/<circle/g)).toHaveLength(2 + 1);
});

test('whoever cannot see it is told the same in words, and it stays small with thousands of requests', () => {
  const requests = Array.from({ length: 4_000 }, (_, at): [number, number] => [at * 8, at % 9 ? 200 : 429]);
  const lines = ['one', 'two', 'three', 'four', 'five', 'six'].map((label) =>
    line({ label, requests, pages: 3_555, refused: 445 }),
  );
  const panels = ['Calm', 'Guarded'].map((title) => ({ title, measured: measured(...ours, ...lines) }));
  const svg = drawLimit(panels);
  expect(svg).toMatch(/role="img" aria-labelledby="title desc"/);
  expect(svg).toMatch(/<title id="title">[^<]*120 in 6 s/);
  expect(svg).toMatch(
    /<desc id="desc">Calm\. this app: 2001 pages, 0 times 429; one: 3555 pages, 445 times 429/,
  );
  expect(svg.length).toBeLessThan(100_000);
});
