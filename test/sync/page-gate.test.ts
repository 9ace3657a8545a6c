import { expect, test } from 'vitest';
import { AnswerMemory } from '../../src/client/answer-memory.ts';
import { PageGate } from '../../src/sync/page-gate.ts';

const CALM = 0.5;
const BUSY = 1;
const NOTHING = { waiting: 0 };
const KILOBYTE = 1024;
const never = new AbortController().signal;

function newGate(toWrite = NOTHING): PageGate {
  return new PageGate(toWrite, new AnswerMemory());
}

/** A gate whose places are all taken; answers how many were free. */
function full(gate = newGate()): { gate: PageGate; places: number } {
  let places = 0;
  while (gate.tryEnter()) places++;
  return { gate, places };
}

/** Lets somebody wait; notes when it gets in. */
function wait(gate: PageGate, name: string, pages: number, order: string[]): Promise<void> {
  return gate.enter(pages, never).then(() => {
    order.push(name);
  });
}

/** Everybody inside leaves, one after the other. */
async function empty(gate: PageGate, count: number): Promise<void> {
  for (let left = 0; left < count; left++) {
    gate.leave();
    await Promise.resolve();
  }
}

test('who has fewer pages goes first, and who came first among equals', async () => {
  const { gate } = full();
  const order: string[] = [];
  const all = [
    wait(gate, 'giant', 5_000, order),
    wait(gate, 'second of three pages', 3, order),
    wait(gate, 'other giant', 900, order),
    wait(gate, 'third of three pages', 3, order),
    wait(gate, 'new', 0, order),
  ];
  await empty(gate, all.length);
  await Promise.all(all);
  expect(order).toEqual(['new', 'second of three pages', 'third of three pages', 'giant', 'other giant']);
});

test('nobody slips past those that wait', async () => {
  const { gate } = full();
  const order: string[] = [];
  const one = wait(gate, 'one', 9, order);
  expect(gate.tryEnter()).toBe(false);
  gate.leave();
  await one;
  expect(gate.tryEnter()).toBe(false);
});

test('who is called away while it waits takes no place', async () => {
  const { gate } = full();
  const away = new AbortController();
  const order: string[] = [];
  const gone = gate.enter(0, away.signal);
  const other = wait(gate, 'other', 50, order);
  away.abort(new Error('the process ends'));
  await expect(gone).rejects.toThrow('the process ends');
  await expect(gate.enter(0, away.signal)).rejects.toThrow('the process ends');
  gate.leave();
  await other;
  gate.leave();
  expect(gate.tryEnter()).toBe(true);
});

test('it opens while it is full and the process has time, not when nobody wants in', () => {
  const { gate, places } = full();
  gate.adjust(CALM);
  const more = full(gate).places;
  expect(more).toBeGreaterThan(0);
  const idle = newGate();
  for (let times = 0; times < 50; times++) idle.adjust(CALM);
  expect(full(idle).places).toBe(places);
});

test('it closes again while most pages wait to be written, to where it was at first', async () => {
  const toWrite = { waiting: 0 };
  const { gate, places } = full(newGate(toWrite));
  let inside = places;
  for (let times = 0; times < 20; times++) {
    gate.adjust(CALM);
    inside += full(gate).places;
  }
  expect(inside).toBeGreaterThan(2 * places);
  toWrite.waiting = inside;
  for (let times = 0; times < 200; times++) gate.adjust(BUSY);
  toWrite.waiting = 0;
  await empty(gate, inside);
  expect(full(gate).places).toBe(places);
});

test('a busy process that writes pages as they come keeps it as it is', async () => {
  const toWrite = { waiting: 0 };
  const { gate, places } = full(newGate(toWrite));
  gate.adjust(CALM);
  const more = full(gate).places;
  toWrite.waiting = 8;
  for (let times = 0; times < 200; times++) gate.adjust(BUSY);
  toWrite.waiting = 0;
  await empty(gate, places + more);
  expect(full(gate).places).toBe(places + more);
});

test('a page that waits to be written keeps its place', async () => {
  const toWrite = { waiting: 0 };
  const { gate, places } = full(newGate(toWrite));
  toWrite.waiting = 2;
  await empty(gate, 3);
  expect(gate.tryEnter()).toBe(true);
  expect(gate.tryEnter()).toBe(false);
  toWrite.waiting = 0;
  await empty(gate, places - 2);
  expect(full(gate).places).toBe(places);
});

/** Lets pages in, of which each is read and waits for its own logic, until the gate is full. */
function keepAll(gate: PageGate, bytes: number, most: number): number {
  let pages = 0;
  for (; pages < most && gate.tryEnter(); pages++) {
    gate.keep(bytes);
    gate.leave();
  }
  return pages;
}

test('own logic that holds up two pages of each of two thousand runs keeps no other from being read', () => {
  expect(keepAll(newGate(), 100 * KILOBYTE, 4_000)).toBe(4_000);
});

test('while half a gigabyte of pages is kept in memory, as own logic takes its time, no more are asked for', async () => {
  const gate = newGate();
  expect(keepAll(gate, 128 * KILOBYTE, 100_000)).toBe(4_096);
  const order: string[] = [];
  const next = wait(gate, 'next', 0, order);
  for (let times = 0; times < 50; times++) gate.adjust(CALM);
  await Promise.resolve();
  expect(order).toEqual([]);
  gate.written(128 * KILOBYTE);
  await next;
  gate.leave();
  for (let page = 0; page < 4_095; page++) gate.written(128 * KILOBYTE);
  expect(full(gate).places).toBe(full().places);
});
